#include "models/zoo/zoo.hpp"
#include "models/data/dataset.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/models/graphs.hpp"

namespace hcclsim::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refused_model(const ModelOptions& options) {
  return model_refusal([&] { (void)make_model(options); });
}

TEST(Zoo, NamesAreForgiving) {
  for (const char* name : {"resnet50", "ResNet50", "ResNet-50", "RESNET_50"}) {
    EXPECT_EQ(make_model({.name = name}).title, "ResNet50 v1.5") << name;
  }
  EXPECT_EQ(make_model({.name = "MobileNetV2"}).title, "MobileNetV2");
  for (const ModelInfo& info : model_list()) {
    EXPECT_TRUE(make_model({.name = std::string(info.name)}).title.starts_with(info.title)) << info.name;
  }
}

TEST(Zoo, UnknownNameListsAllAndTheNearest) {
  EXPECT_THAT(refused_model({.name = "resnet51"}),
              AllOf(HasSubstr("'resnet51'"), HasSubstr("did you mean resnet50?"), HasSubstr("vgg16, alexnet")));
  EXPECT_THAT(refused_model({.name = ""}), HasSubstr("resnet50"));
}

TEST(Zoo, RefusesImpossibleSizes) {
  EXPECT_THAT(refused_model({.batch = 0}), HasSubstr("batch must be 1 to 65536, got 0"));
  EXPECT_THAT(refused_model({.batch = 65537}), HasSubstr("65537"));
  EXPECT_THAT(refused_model({.input = 0}), HasSubstr("0x0"));
  EXPECT_THAT(refused_model({.input = 1'000'000}), HasSubstr("1000000"));
  EXPECT_THAT(refused_model({.classes = 0}), AllOf(HasSubstr("fc"), HasSubstr("got 0")));
  EXPECT_THAT(refused_model({.input = 31}), AllOf(HasSubstr("layer4.0.conv2"), HasSubstr("31x31"), HasSubstr("32")));
  EXPECT_THAT(refused_model({.name = "vgg16", .input = 31}), HasSubstr("features.30"));
  EXPECT_THAT(refused_model({.name = "alexnet", .input = 62}),
              AllOf(HasSubstr("features.12"), HasSubstr("3x3 window")));
  EXPECT_THAT(refused_model({.name = "mlp:16000000,16000000"}), HasSubstr("parameters"));
}

TEST(Zoo, SmallestInputs) {
  EXPECT_EQ(find(make_model({.input = 32}), "layer4.2.conv3").shape().image(), 1U);
  EXPECT_EQ(find(make_model({.name = "alexnet", .input = 63}), "features.12").shape().image(), 1U);
  EXPECT_EQ(find(make_model({.name = "vgg16", .input = 32}), "features.30").shape().image(), 1U);
}

TEST(Zoo, OddInputsRoundAsTorchDoes) {
  // conv1: (225 + 6 − 7) / 2 + 1 = 113; maxpool: (113 + 2 − 3) / 2 + 1 = 57; then 29, 15, 8.
  const Graph graph = make_model({.name = "resnet50", .input = 225});
  EXPECT_EQ(find(graph, "conv1").shape().height(), 113U);
  EXPECT_EQ(find(graph, "maxpool").shape().height(), 57U);
  EXPECT_EQ(find(graph, "layer2.0.conv2").shape().height(), 29U);
  EXPECT_EQ(find(graph, "layer3.0.downsample.0").shape().height(), 15U);
  EXPECT_EQ(find(graph, "layer4.2.conv3").shape().height(), 8U);
  EXPECT_EQ(find(make_model({.input = 33}), "layer4.2.conv3").shape().height(), 2U);
}

TEST(Zoo, ClassesAndBiasOfTheLastOperator) {
  EXPECT_EQ(make_model({.classes = 1001}).parameter_elements(), 25'559'081U);
  const Graph graph = make_model({.fc_bias = false});
  EXPECT_EQ(graph.parameters.size(), 160U);
  EXPECT_EQ(graph.parameters.back().name, "fc.weight");
  EXPECT_EQ(make_model({.name = "vgg16", .fc_bias = false}).parameters.size(), 31U);
}

TEST(Zoo, Mlp) {
  const Graph graph = make_model({.name = "mlp:784,512,10", .batch = 8});
  EXPECT_EQ(graph.title, "MLP 784-512-10");
  EXPECT_EQ(graph.parameter_elements(), 784U * 512 + 512 + 512 * 10 + 10);
  EXPECT_EQ(graph.operators.front().shape(), (Shape{8, 784}));
  EXPECT_EQ(make_model({.name = "MLP:4,2", .fc_bias = false}).parameters.size(), 1U);
  for (const char* name : {"mlp:", "mlp:4", "mlp:4,", "mlp:,4", "mlp:4,,5", "mlp:4,0", "mlp:-4,5", "mlp:4;5",
                           "mlp:4, 5", "mlp:4,5x", "mlp:99999999999,5"}) {
    EXPECT_THAT(refused_model({.name = name}), HasSubstr(name)) << name;
  }
  EXPECT_THAT(refused_model({.name = "mlp:4,5", .input = 224}), HasSubstr("--input"));
  EXPECT_THAT(refused_model({.name = "mlp:4,5", .classes = 5}), HasSubstr("--classes"));
}

TEST(Zoo, SmallNetworksHaveTheirOwnSizes) {
  const Graph lenet = make_model({.name = "lenet", .batch = 4});
  EXPECT_EQ(lenet.operators.front().shape(), (Shape{4, 1, 28, 28}));
  EXPECT_EQ(sample_form(lenet).classes, 10U);
  EXPECT_EQ(lenet.input_kind, InputKind::images);
  EXPECT_EQ(sample_form(make_model({.name = "lenet", .input = 32, .classes = 7})).classes, 7U);
  EXPECT_THAT(refused_model({.name = "lenet", .input = 11}), HasSubstr("at least 12 pixels"));
  EXPECT_EQ(make_model({.name = "smallres"}).operators.front().shape().height(), 16U);
  EXPECT_EQ(make_model({.name = "smallres", .fc_bias = false}).parameters.size(), 19U);
  const Graph tinygpt = make_model({.name = "tinygpt", .batch = 2});
  EXPECT_EQ(tinygpt.operators.front().shape(), (Shape{2, 16}));
  EXPECT_EQ(sample_form(tinygpt).classes, 32U);
  EXPECT_EQ(tinygpt.input_of(tinygpt.operators.back()).batch(), 32U);
  EXPECT_THAT(refused_model({.name = "tinygpt", .input = 16}), AllOf(HasSubstr("tinygpt"), HasSubstr("--input")));
  EXPECT_THAT(refused_model({.name = "tinygpt", .classes = 16}), HasSubstr("--classes"));
  EXPECT_EQ(make_model({.name = "mlp:4,2"}).input_kind, InputKind::features);
}

TEST(Zoo, ResNetsStartTheirResidualBranchesSmall) {
  const auto scaled = [](const char* name) {
    std::vector<std::string> names;
    for (const Parameter& parameter : make_model({.name = name}).parameters) {
      if (parameter.initial_scale != 1) names.push_back(fmt::format("{} {}", parameter.name, parameter.initial_scale));
    }
    return names;
  };
  const std::vector<std::string> bottleneck = scaled("resnet50");
  EXPECT_EQ(bottleneck.size(), 16U);
  for (const std::string& name : bottleneck) EXPECT_THAT(name, testing::EndsWith(".bn3.weight 0.125"));
  const std::vector<std::string> basic = scaled("resnet18");
  EXPECT_EQ(basic.size(), 8U);
  for (const std::string& name : basic) EXPECT_THAT(name, testing::EndsWith(".bn2.weight 0.125"));
  EXPECT_THAT(scaled("smallres"), testing::IsEmpty());
}

}  // namespace
}  // namespace hcclsim::models
