// Which kernels of ResNet50 measured kernels stand for, in the spellings of the frameworks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/program.hpp"
#include "device/soc.hpp"
#include "models/zoo/zoo.hpp"
#include "study/files/profile/kernel_names.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ProfileKernelNames : public testing::Test {
 protected:
  std::vector<std::string> find(const std::string& name, const std::string& type) const {
    std::vector<std::string> found;
    for (const models::Kernel* kernel : names_.find(name, type)) found.push_back(kernel->name);
    return found;
  }
  /// MindSpore's path of a layer, with its operator.
  std::vector<std::string> mindspore(const std::string& layer, const std::string& type) const {
    const std::string cells = "Default/network-TrainOneStepCell/network-WithLossCell/_backbone-ResNet/";
    const bool backward = type.ends_with("Grad") || type.find("Backprop") != std::string::npos;
    return find((backward ? "Gradients/" : "") + cells + layer + (backward ? "/grad/" : "/") + type + "-op12", type);
  }

 private:
  std::vector<std::string> notes_;
  models::Graph graph_ = models::make_model({"resnet50", 32, {}, {}, true});
  models::Program program_ = make_program(graph_, device::find_soc("Ascend910A", notes_), {}, notes_);
  KernelNames names_{graph_, program_};
};

TEST_F(ProfileKernelNames, OwnNames) {
  EXPECT_THAT(find("layer1.0.conv1:forward+reduce", "N/A"), ElementsAre("layer1.0.conv1:forward+reduce"));
  EXPECT_THAT(find("fc.bias:momentum", ""), ElementsAre("fc.bias:momentum"));
}

TEST_F(ProfileKernelNames, MindSporeForward) {
  const std::string block = "layer1-SequentialCell/0-ResidualBlock/";
  EXPECT_THAT(mindspore("conv1-Conv2d", "Conv2D"), ElementsAre("conv1:forward+reduce"));
  EXPECT_THAT(mindspore(block + "conv1-Conv2d", "Conv2D"), ElementsAre("layer1.0.conv1:forward+reduce"));
  EXPECT_THAT(mindspore(block + "conv1-Conv2d", "Cast"), ElementsAre("layer1.0.conv1:cast"));
  EXPECT_THAT(mindspore(block + "bn1-BatchNorm2d", "BNTrainingReduce"), ElementsAre("layer1.0.conv1:forward+reduce"));
  EXPECT_THAT(mindspore(block + "bn1-BatchNorm2d", "BNTrainingUpdate"), ElementsAre("layer1.0.bn1:update+relu"));
  EXPECT_THAT(mindspore(block + "down_sample_layer-SequentialCell/0-Conv2d", "Conv2D"),
              ElementsAre("layer1.0.downsample.0:forward+reduce"));
  EXPECT_THAT(mindspore("end_point-Dense", "MatMul"), ElementsAre("fc:forward"));
  EXPECT_THAT(find("Default/_loss_fn-SoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits-op1",
                   "SparseSoftmaxCrossEntropyWithLogits"),
              ElementsAre("loss:forward"));
}

TEST_F(ProfileKernelNames, MindSporeBackward) {
  const std::string block = "layer4-SequentialCell/2-ResidualBlock/";
  EXPECT_THAT(mindspore(block + "conv2-Conv2d", "Conv2DBackpropFilter"), ElementsAre("layer4.2.conv2:weight_gradient"));
  EXPECT_THAT(mindspore(block + "conv2-Conv2d", "Conv2DBackpropInput"),
              ElementsAre("layer4.2.conv2:data_gradient+mask"));
  EXPECT_THAT(mindspore(block + "bn2-BatchNorm2d", "BNTrainingUpdateGrad"),
              ElementsAre("layer4.2.bn2:reduce_gradient"));
  EXPECT_THAT(mindspore(block + "bn2-BatchNorm2d", "BNTrainingReduceGrad"), ElementsAre("layer4.2.bn2:apply_gradient"));
  EXPECT_THAT(mindspore("end_point-Dense", "BiasAddGrad"), ElementsAre("fc:bias_gradient"));
  EXPECT_THAT(find("Gradients/Default/_backbone-ResNet/end_point-Dense/gradMatMul/MatMul-op7", "MatMulV2"),
              ElementsAre("fc:weight_gradient", "fc:data_gradient"));
}

// The shortcut of a block is made first: conv2d_1 is that of layer1.0, conv2d_4 the last of its branch.
TEST_F(ProfileKernelNames, TensorFlowCountsLayers) {
  EXPECT_THAT(find("resnet_model/conv2d/Conv2D", "Conv2D"), ElementsAre("conv1:forward+reduce"));
  EXPECT_THAT(find("resnet_model/conv2d_1/Conv2D", "Conv2D"), ElementsAre("layer1.0.downsample.0:forward+reduce"));
  EXPECT_THAT(find("resnet_model/conv2d_2/Conv2D", "Conv2D"), ElementsAre("layer1.0.conv1:forward+reduce"));
  EXPECT_THAT(find("resnet_model/conv2d_4/Conv2D", "Conv2D"), ElementsAre("layer1.0.conv3:forward+reduce"));
  EXPECT_THAT(find("resnet_model/conv2d_52/Conv2D", "Conv2D"), ElementsAre("layer4.2.conv3:forward+reduce"));
  EXPECT_THAT(find("resnet_model/conv2d_53/Conv2D", "Conv2D"), IsEmpty());
  EXPECT_THAT(find("gradients/resnet_model/conv2d_52/Conv2D_grad/Conv2DBackpropFilter", "Conv2DBackpropFilterD"),
              ElementsAre("layer4.2.conv3:weight_gradient"));
  EXPECT_THAT(find("resnet_model/batch_normalization/FusedBatchNormV3_Update", "BNTrainingUpdate"),
              ElementsAre("bn1:update+relu"));
  EXPECT_THAT(find("resnet_model/dense/MatMul", "MatMulV2"), ElementsAre("fc:forward"));
  // A fused kernel is named after its operators.
  EXPECT_THAT(find("resnet_model/conv2d_2/Conv2Dresnet_model/batch_normalization_2/FusedBatchNormV3_Reduce", "Conv2D"),
              ElementsAre("layer1.0.conv1:forward+reduce"));
}

TEST_F(ProfileKernelNames, TensorFlowsPoolsAndMean) {
  EXPECT_THAT(find("resnet_model/max_pooling2d/MaxPool", "MaxPool"), ElementsAre("maxpool:forward"));
  EXPECT_THAT(find("resnet_model/max_pooling/MaxPool", "MaxPoolWithArgmax"), ElementsAre("maxpool:forward"));
  EXPECT_THAT(find("gradients/resnet_model/max_pooling2d/MaxPool_grad/MaxPoolGrad", "MaxPoolGradWithArgmax"),
              ElementsAre("maxpool:gradient+mask"));
  EXPECT_THAT(find("resnet_model/Mean", "ReduceMeanD"), ElementsAre("avgpool:forward"));
  EXPECT_THAT(find("gradients/resnet_model/Mean_grad/truediv", "RealDiv"), ElementsAre("avgpool:gradient+mask"));
  EXPECT_THAT(find("resnet_model/dense/BiasAdd", "BiasAdd"), ElementsAre("fc:forward"));
  EXPECT_THAT(find("sparse_softmax_cross_entropy_loss/xentropy/xentropy", "SparseSoftmaxCrossEntropyWithLogits"),
              ElementsAre("loss:forward"));
  // The means of the loss and of what is reported are none of the network's.
  EXPECT_THAT(find("cross_entropy/Mean", "ReduceMeanD"), IsEmpty());
  EXPECT_THAT(find("train_accuracy/Mean", "ReduceMeanD"), IsEmpty());
  // One kernel for all of a batch norm.
  EXPECT_THAT(find("resnet_model/batch_normalization_1/FusedBatchNormV3", "FusedBatchNormV3"),
              ElementsAre("layer1.0.downsample.1:update"));
  EXPECT_THAT(find("gradients/resnet_model/batch_normalization/FusedBatchNormV3_grad/FusedBatchNormGradV3",
                   "FusedBatchNormGradV3"),
              ElementsAre("bn1:reduce_gradient", "bn1:apply_gradient"));
}

TEST_F(ProfileKernelNames, Keras) {
  EXPECT_THAT(find("resnet50/conv1_conv/Conv2D", "Conv2D"), ElementsAre("conv1:forward+reduce"));
  EXPECT_THAT(find("resnet50/conv1_bn/FusedBatchNormV3", "BNTrainingUpdate"), ElementsAre("bn1:update+relu"));
  EXPECT_THAT(find("resnet50/conv2_block1_0_conv/Conv2D", "Conv2D"),
              ElementsAre("layer1.0.downsample.0:forward+reduce"));
  EXPECT_THAT(find("resnet50/conv5_block3_2_conv/Conv2D", "Conv2D"), ElementsAre("layer4.2.conv2:forward+reduce"));
  EXPECT_THAT(find("gradients/resnet50/conv3_block4_3_bn/x_grad/y", "BNTrainingReduceGrad"),
              ElementsAre("layer2.3.bn3:apply_gradient"));
  EXPECT_THAT(find("resnet50/pool1_pool/MaxPool", "MaxPool"), ElementsAre("maxpool:forward"));
  EXPECT_THAT(find("resnet50/avg_pool/Mean", "ReduceMean"), ElementsAre("avgpool:forward"));
  EXPECT_THAT(find("resnet50/predictions/MatMul", "MatMulV2"), ElementsAre("fc:forward"));
  EXPECT_THAT(find("resnet50/conv7_block1_1_conv/Conv2D", "Conv2D"), IsEmpty());
}

TEST_F(ProfileKernelNames, TensorFlowSlim) {
  const std::string unit = "resnet_v1_50/block2/unit_3/bottleneck_v1/";
  EXPECT_THAT(find("resnet_v1_50/conv1/Conv2D", "Conv2D"), ElementsAre("conv1:forward+reduce"));
  EXPECT_THAT(find("resnet_v1_50/conv1/BatchNorm/FusedBatchNorm", "BNTrainingUpdate"), ElementsAre("bn1:update+relu"));
  EXPECT_THAT(find(unit + "conv1/Conv2D", "Conv2D"), ElementsAre("layer2.2.conv1:forward+reduce"));
  EXPECT_THAT(find(unit + "conv1/BatchNorm/FusedBatchNorm", "BNTrainingUpdate"),
              ElementsAre("layer2.2.bn1:update+relu"));
  EXPECT_THAT(find("gradients/resnet_v1_50/block1/unit_1/bottleneck_v1/shortcut/Conv2D_grad/Conv2DBackpropFilter",
                   "Conv2DBackpropFilterD"),
              ElementsAre("layer1.0.downsample.0:weight_gradient"));
  EXPECT_THAT(find("resnet_v1_50/pool5", "ReduceMeanD"), ElementsAre("avgpool:forward"));
  EXPECT_THAT(find("resnet_v1_50/block9/unit_1/bottleneck_v1/conv1/Conv2D", "Conv2D"), IsEmpty());
}

TEST_F(ProfileKernelNames, Updates) {
  EXPECT_THAT(find("Momentum/update_resnet_model/dense/kernel/ApplyMomentum", "ApplyMomentum"),
              ElementsAre("fc.weight:momentum"));
  EXPECT_THAT(find("Momentum/update_resnet_model/batch_normalization/beta/ApplyMomentum", "ApplyMomentumD"),
              ElementsAre("bn1.bias:momentum"));
  EXPECT_THAT(find("Default/optimizer-Momentum/ApplyMomentum-op9", "ApplyMomentum"), SizeIs(161));
}

TEST_F(ProfileKernelNames, StrangersMatchNothing) {
  EXPECT_THAT(find("trans_TransData_12", "TransData"), IsEmpty());
  EXPECT_THAT(mindspore("layer9-SequentialCell/0-ResidualBlock/conv1-Conv2d", "Conv2D"), IsEmpty());
  EXPECT_THAT(find("gradients/AddN_70", "AddN"), IsEmpty());
}

}  // namespace
}  // namespace hcclsim::study
