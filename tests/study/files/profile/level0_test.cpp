#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "study/files/profile/kernel_profile.hpp"

/// Profiles of level 0, whose rows tell neither types nor cores.
namespace hcclsim::study {
namespace {

TEST(KernelProfile, TypesByNamesWhereTheFileHasNone) {
  const auto type_of = [](const std::string& name) {
    return parse_kernel_profile("Name,Start Time(us),Duration(us)\n" + name + ",1,2\n", "k.csv").kernels.front().type;
  };
  EXPECT_EQ(type_of("aclnnMatmul_MatMulV3Common_MatMulV3"), "MatMulV3");
  EXPECT_EQ(type_of("aclnnAdd_AddAiCore_Add_12"), "Add");
  EXPECT_EQ(type_of("Default/network-WithLossCell/fc1-Dense/MatMul-op11"), "MatMul");
  EXPECT_EQ(type_of("Gradients/Default/fc2-Dense/gradBiasAdd/BiasAddGrad-op20"), "BiasAddGrad");
  EXPECT_EQ(type_of("mlp/dense/MatMul_1"), "MatMul");
  EXPECT_EQ(type_of("Conv2D_3c5a2b1fd0e94876a1b2c3d4e5f60718_high_performance_1"), "Conv2D");
  EXPECT_EQ(type_of("Softmax"), "Softmax");
  EXPECT_EQ(type_of("conv1:forward+reduce"), "");
  const KernelProfile told = parse_kernel_profile(
      "Name,Type,Accelerator Core,Start Time(us),Duration(us)\nx/MatMul-op1,N/A,N/A,1,2\nhcom_send_1,N/A,N/A,4,2\n",
      "k.csv");
  EXPECT_EQ(told.kernels.front().type, "MatMul");
  EXPECT_TRUE(told.kernels.back().communication);
}

}  // namespace
}  // namespace hcclsim::study
