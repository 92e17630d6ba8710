// PyTorch's kernels, whose names are those of functions: which operator each is for follows from the order of
// launching.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/zoo/zoo.hpp"
#include "study/files/profile/import.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/programs.hpp"

namespace hcclsim::study {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr double launch_tolerance = 1e-12;

/// Writes kernel_details.csv as PyTorch's profiler does, one kernel right behind the other.
class PyTorchProfile {
 public:
  explicit PyTorchProfile(bool step_ids = true)
      : step_ids_(step_ids),
        text_(step_ids ? "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
                       : "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n") {}

  void launch(const std::string& function, const std::string& type, double us) {
    if (step_ids_) text_ += fmt::format("{},", step_);
    const std::string name = by_type_ ? type + "12" : "aclnn" + function;
    text_ += fmt::format("0,{},{},AI_CORE,1699529623{:06.0f}.000\t,{},0\n", name, type, date_us_, us);
    date_us_ += us;
  }
  void next_step() { ++step_; }
  /// Names of types from here on.
  void name_by_type() { by_type_ = true; }
  [[nodiscard]] std::string file() const { return test::write_temporary("kernel_details.csv", text_); }

 private:
  bool step_ids_;
  bool by_type_ = false;
  std::string text_;
  int step_ = 1;
  double date_us_ = 0;
};

constexpr int resnet50_convolutions = 53;

/// torchvision's ResNet50: convolution i takes 100 + i us, its weight gradient, in the order of launching, 300 + i.
void launch_resnet50(PyTorchProfile& profile, int convolutions = resnet50_convolutions) {
  profile.launch("InplaceZero_ZerosLikeAiCore_ZerosLike", "ZerosLike", 3);
  for (int i = 0; i < convolutions; ++i) {
    profile.launch("Convolution_Conv2dWithFlag_Conv2D", "Conv2D", 100 + i);
    profile.launch("BatchNorm_BNTrainingReduce_BNTrainingReduce", "BNTrainingReduce", 10);
    profile.launch("BatchNorm_BNTrainingUpdate_BNTrainingUpdate", "BNTrainingUpdate", 20);
    if (i == 0) profile.launch("MaxPool2dWithMask_MaxPoolWithArgmaxV1_MaxPoolWithArgmaxV1", "MaxPoolWithArgmaxV1", 40);
  }
  profile.launch("AdaptiveAvgPool2d_ReduceMeanAiCore_ReduceMean", "ReduceMean", 7);
  profile.launch("Addmm_MatMulV3Common_MatMulV3", "MatMulV3", 30);
  profile.launch("LogSoftmax_LogSoftmaxV2_LogSoftmaxV2", "LogSoftmaxV2", 4);
  profile.launch("NLLLoss_NLLLoss_NLLLoss", "NLLLoss", 5);
  profile.launch("NLLLossBackward_NLLLossGrad_NLLLossGrad", "NLLLossGrad", 5);
  profile.launch("LogSoftmaxBackward_LogSoftmaxGrad_LogSoftmaxGrad", "LogSoftmaxGrad", 6);
  profile.launch("Mm_MatMulV3Common_MatMulV3", "MatMulV3", 31);
  profile.launch("Mm_MatMulV3Common_MatMulV3", "MatMulV3", 32);
  profile.launch("ReduceSum_ReduceSumOpAiCore_ReduceSum", "ReduceSum", 8);
  for (int i = 0; i < convolutions; ++i) {
    if (i + 1 == convolutions) {
      profile.launch("MaxPool2dWithMaskBackward_MaxPoolGradWithArgmaxV1", "MaxPoolGradWithArgmaxV1", 50);
    }
    profile.launch("BatchNormBackward_BNTrainingUpdateGrad_BNTrainingUpdateGrad", "BNTrainingUpdateGrad", 11);
    profile.launch("BatchNormBackward_BNTrainingReduceGrad_BNTrainingReduceGrad", "BNTrainingReduceGrad", 12);
    if (i + 1 < convolutions) {
      profile.launch("ConvolutionBackward_Conv2DBackpropInput_Conv2DBackpropInput", "Conv2DBackpropInput", 200 + i);
    }
    profile.launch("ConvolutionBackward_Conv2DBackpropFilter_Conv2DBackpropFilter", "Conv2DBackpropFilter", 300 + i);
  }
  profile.launch("ForeachMulScalar_ForeachMulScalar_ForeachMulScalar", "ForeachMulScalar", 60);
  profile.launch("ForeachAddList_ForeachAddList_ForeachAddList", "ForeachAddList", 70);
}

struct PyTorchImport {
  explicit PyTorchImport(const std::string& file, const std::string& model = "resnet50")
      : graph(models::make_model({model, 32, {}, {}, true})) {
    std::vector<std::string> notes;
    program = imported_program(read_profiles(std::vector{file}), graph, device::find_soc("Ascend910A", notes), {}, 1,
                               imported, notes);
  }
  [[nodiscard]] double us(const std::string& name) const {
    for (const models::Kernel& kernel : program.kernels) {
      if (kernel.name.starts_with(name)) return kernel.duration / microsecond;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  models::Graph graph;
  ImportedProfile imported;
  models::Program program;
};

void expect_resnet50(const PyTorchImport& import) {
  // Forward: conv1, then conv1 to conv3 of the first block, then its shortcut. The sums of a batch norm are the
  // convolution's in the model.
  EXPECT_NEAR(import.us("layer1.0.conv1:forward"), 111, 1e-6);
  EXPECT_NEAR(import.us("layer1.0.conv3:forward"), 113, 1e-6);
  EXPECT_NEAR(import.us("layer1.0.downsample.0:forward"), 114, 1e-6);
  EXPECT_NEAR(import.us("layer4.2.conv3:forward"), 162, 1e-6);
  EXPECT_NEAR(import.us("bn1:update"), 20, 1e-6);
  EXPECT_NEAR(import.us("maxpool:forward"), 40, 1e-6);
  EXPECT_NEAR(import.us("avgpool:forward"), 7, 1e-6);
  EXPECT_NEAR(import.us("fc:forward"), 30, 1e-6);
  EXPECT_NEAR(import.us("loss:forward"), 9, 1e-6);
  // Backward the other way round: autograd goes through the shortcut of the first block before its conv3.
  EXPECT_NEAR(import.us("layer4.2.conv3:weight_gradient"), 300, 1e-6);
  EXPECT_NEAR(import.us("layer4.2.conv3:data_gradient"), 200, 1e-6);
  EXPECT_NEAR(import.us("layer1.0.downsample.0:weight_gradient"), 348, 1e-6);
  EXPECT_NEAR(import.us("layer1.0.conv3:weight_gradient"), 349, 1e-6);
  EXPECT_NEAR(import.us("conv1:weight_gradient"), 352, 1e-6);
  EXPECT_NEAR(import.us("layer1.0.bn3:reduce_gradient"), 11, 1e-6);
  EXPECT_NEAR(import.us("fc:bias_gradient"), 8, 1e-6);
  EXPECT_NEAR(import.us("maxpool:gradient"), 50, 1e-6);
  EXPECT_NEAR(*import.imported.measured.update, 130 * microsecond, launch_tolerance);
  EXPECT_TRUE(import.imported.kernels->update.whole());
}

TEST(LaunchOrder, PyTorchsResNet50) {
  PyTorchProfile profile;
  launch_resnet50(profile);
  profile.next_step();
  launch_resnet50(profile);
  const PyTorchImport import(profile.file());
  EXPECT_EQ(import.imported.kernels->iterations, 2U);
  expect_resnet50(import);
  // What has no counterpart: gradients of the loss, and zeros in front of the step.
  EXPECT_NEAR(import.imported.kernels->unmatched_time, 14 * microsecond, launch_tolerance);
}

TEST(LaunchOrder, NamesOfTypes) {
  PyTorchProfile profile;
  profile.name_by_type();
  launch_resnet50(profile);
  expect_resnet50(PyTorchImport(profile.file()));
}

TEST(LaunchOrder, StepsWithoutIds) {
  PyTorchProfile profile(false);
  for (int i = 0; i < 3; ++i) launch_resnet50(profile);
  const PyTorchImport import(profile.file());
  EXPECT_EQ(import.imported.kernels->iterations, 3U) << import.imported.kernels->iterations_by;
  expect_resnet50(import);
}

TEST(LaunchOrder, KindsOfAnotherNumberAreLeftAlone) {
  PyTorchProfile profile;
  launch_resnet50(profile, resnet50_convolutions - 1);
  const PyTorchImport import(profile.file());
  EXPECT_THAT(import.imported.notes, Contains(HasSubstr("launches 52 Conv2D (the model has 53): not matched")));
  // The pools and the last layer are.
  EXPECT_NEAR(import.us("fc:forward"), 30, 1000);
  EXPECT_FALSE(import.imported.measured.forward_backward.has_value());
  EXPECT_THAT(import.imported.notes, Contains(HasSubstr("FP+BP are not compared: conv1:weight_gradient")));
}

TEST(LaunchOrder, AnMlp) {
  PyTorchProfile profile;
  profile.launch("Addmm_MatMulV2_MatMulV2", "MatMulV2", 50);
  profile.launch("Addmm_MatMulV2_MatMulV2", "MatMulV2", 20);
  profile.launch("LogSoftmax_LogSoftmaxV2", "LogSoftmaxV2", 4);
  profile.launch("LogSoftmaxBackward_LogSoftmaxGrad", "LogSoftmaxGrad", 6);
  profile.launch("Mm_MatMulV2_MatMulV2", "MatMulV2", 21);
  profile.launch("Mm_MatMulV2_MatMulV2", "MatMulV2", 22);
  profile.launch("ReduceSum_ReduceSum_ReduceSum", "ReduceSum", 5);
  profile.launch("Mm_MatMulV2_MatMulV2", "MatMulV2", 60);
  profile.launch("ReduceSum_ReduceSum_ReduceSum", "ReduceSum", 7);
  profile.launch("InplaceAdd_AddAiCore_Add", "Add", 9);
  const PyTorchImport import(profile.file(), "mlp:64,32,10");
  EXPECT_NEAR(import.us("fc2:forward"), 20, 1e-6);
  EXPECT_NEAR(import.us("fc2:weight_gradient") + import.us("fc2:data_gradient"), 49, 1e-6);  // and 6 before them
  EXPECT_NEAR(import.us("fc1:weight_gradient"), 60, 1e-6);
  EXPECT_NEAR(import.us("fc1:bias_gradient"), 7, 1e-6);
}

}  // namespace
}  // namespace hcclsim::study
