// Networks against the figures of an independent program (tests/data/oracle/cnn.json: one image of 224x224).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/json_file.hpp"

namespace hcclsim::models {
namespace {

Json load(const std::string& name) { return test::read_json("oracle/" + name); }

// Columns of the oracle's tables of parameters, gradients and activations.
constexpr std::size_t name_column = 0;
constexpr std::size_t shape_column = 1;

/// A row of a table by the names of the columns, which a list gives.
class NamedRow {
 public:
  NamedRow(const Json& columns, const Json& row) : columns_(columns), row_(row) {}
  [[nodiscard]] const Json& operator[](std::string_view name) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].text() == name) return row_[i];
    }
    throw std::out_of_range(std::string(name));
  }

 private:
  const Json& columns_;
  const Json& row_;
};

/// The oracle's word for an operator; empty for those that it does not list.
std::string oracle_type(const Graph& graph, const Operator& op) {
  switch (op.kind) {
    case OperatorKind::convolution:
      return "conv";
    case OperatorKind::batch_norm:
      return "batchnorm";
    case OperatorKind::relu:
    case OperatorKind::relu6:
      return "relu";
    case OperatorKind::max_pool:
      return "maxpool";
    case OperatorKind::average_pool:
      return graph.title == "MobileNetV2" ? "" : "avgpool";
    case OperatorKind::add:
      return "add";
    case OperatorKind::linear:
      return "fc";
    case OperatorKind::loss:
      return "softmax_xent";
    default:
      return "";
  }
}

class CnnOracle : public testing::TestWithParam<std::string> {
 protected:
  const Json tables_ = load("cnn.json");
  const Json& oracle_ = tables_["cnn"][GetParam()];
  Graph graph_ = make_model({.name = GetParam(), .batch = 1, .input = 224, .classes = 1000});
};

TEST_P(CnnOracle, ParametersInOrder) {
  ASSERT_EQ(graph_.parameters.size(), oracle_["num_param_tensors"].get<std::size_t>());
  EXPECT_EQ(graph_.parameter_elements(), oracle_["total_params"].get<std::uint64_t>());
  for (std::size_t i = 0; i < graph_.parameters.size(); ++i) {
    SCOPED_TRACE(graph_.parameters[i].name);
    EXPECT_EQ(graph_.parameters[i].name, oracle_["params"][i][name_column].get<std::string>());
    EXPECT_EQ(graph_.parameters[i].shape, oracle_["params"][i][shape_column].get<std::vector<std::uint32_t>>());
  }
}

TEST_P(CnnOracle, LayersWithParametersFlopsAndElements) {
  const std::vector<bool> needs_gradient = graph_.needs_gradient();
  std::size_t row = 0;
  for (const Operator& op : graph_.operators) {
    const std::string type = oracle_type(graph_, op);
    if (type.empty()) continue;
    ASSERT_LT(row, oracle_["layers"].size());
    const NamedRow layer(tables_["layer_columns"], oracle_["layers"][row++]);
    SCOPED_TRACE(op.name);
    const auto oracle_name = layer["name"].get<std::string>();
    if (oracle_name.find('@') == std::string::npos) {
      EXPECT_EQ(op.name, oracle_name);
    } else {  // "layer1.0.relu@6": one ReLU module used several times
      EXPECT_TRUE(op.name.starts_with(oracle_name.substr(0, oracle_name.find('@'))));
    }
    EXPECT_EQ(type, layer["type"].get<std::string>());
    std::uint64_t parameters = 0;
    for (const std::uint32_t index : op.parameters) parameters += graph_.parameters[index].elements;
    EXPECT_EQ(parameters, layer["params"].get<std::uint64_t>());
    EXPECT_EQ(forward_flops(graph_, op), layer["fwd_flops"].get<double>());
    EXPECT_EQ(backward_flops(graph_, op, needs_gradient[op.inputs.front().op]), layer["bwd_flops"].get<double>());
    EXPECT_EQ(op.shape().elements(), layer["out_elems"].get<std::uint64_t>());
  }
  EXPECT_EQ(row, oracle_["layers"].size());
}

INSTANTIATE_TEST_SUITE_P(Networks, CnnOracle,
                         testing::Values("resnet18", "resnet50", "resnet101", "resnet152", "vgg16", "mobilenet_v2"),
                         [](const auto& tested) { return tested.param; });

TEST(Oracle, SmallNetworksHaveItsParametersAndShapes) {
  std::size_t networks = 0;
  const Json cases = load("net_oracle.json")["cases"];
  for (const Json& oracle : cases) {
    auto name = oracle["model"].get<std::string>();
    if (name.starts_with("resnet")) continue;  // all their layers are compared above
    SCOPED_TRACE(name);
    ++networks;
    if (name == "mlp") name = "mlp:64,128,96,10";
    const Graph graph = make_model({.name = name, .batch = oracle["batch"].get<std::uint32_t>()});
    ASSERT_EQ(graph.parameters.size(), oracle["grads"].size());
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
      SCOPED_TRACE(graph.parameters[i].name);
      EXPECT_EQ(graph.parameters[i].name, oracle["grads"][i][name_column].get<std::string>());
      EXPECT_EQ(graph.parameters[i].shape, oracle["grads"][i][shape_column].get<std::vector<std::uint32_t>>());
    }
    for (const Json& activation : oracle.value("activations", Json::array())) {
      auto op = activation[name_column].get<std::string>();
      if (op.starts_with("block")) op += ".relu2";
      const auto found = std::ranges::find(graph.operators, op, &Operator::name);
      ASSERT_NE(found, graph.operators.end()) << op;
      std::vector<std::uint32_t> shape{found->shape().batch(), found->shape().channels()};
      if (found->shape().image() > 1) shape.insert(shape.end(), {found->shape().height(), found->shape().width()});
      EXPECT_EQ(shape, activation[shape_column].get<std::vector<std::uint32_t>>()) << op;
    }
  }
  EXPECT_EQ(networks, 4U);
}

TEST(Oracle, TotalsOfTheOtherNetworks) {
  // torchvision: AlexNet 61,100,840 parameters in 16 tensors, ResNet34 21,797,672 in 110.
  const Graph alexnet = make_model({.name = "alexnet", .batch = 1});
  EXPECT_EQ(alexnet.parameter_elements(), 61'100'840U);
  EXPECT_EQ(alexnet.parameters.size(), 16U);
  const Graph resnet34 = make_model({.name = "resnet34", .batch = 1});
  EXPECT_EQ(resnet34.parameter_elements(), 21'797'672U);
  EXPECT_EQ(resnet34.parameters.size(), 110U);
}

TEST(Oracle, CubeKernelsDoTheMultiplyAddsOfConvolutionAndLinear) {
  const Json totals = load("resnet50_totals.json")["totals_batch32"];
  const Program step = lower(make_model({.name = "resnet50", .batch = 32}), {.fusion = Fusion::none});
  Flops forward = 0;
  Flops backward = 0;
  for (const Kernel& kernel : step.kernels) {
    if (kernel.kind == KernelClass::vector) continue;
    (kernel.phase == Phase::forward ? forward : backward) += kernel.flops;
  }
  EXPECT_EQ(forward, totals["conv_fc_fwd_flops"].get<double>());
  EXPECT_EQ(backward, totals["conv_fc_bwd_flops"].get<double>());
}

struct GradientForm {
  std::uint32_t classes;
  bool fc_bias;
};

class ProductionOrder : public testing::TestWithParam<GradientForm> {};

TEST_P(ProductionOrder, IsTheVendorsRecord) {
  const Json oracle = load("gradient_split.json");
  const auto [classes, fc_bias] = GetParam();
  const Graph graph = make_model({.name = "resnet50", .batch = 32, .classes = classes, .fc_bias = fc_bias});
  const Program step = lower(graph, {});
  auto names = oracle["production_order"].get<std::vector<std::string>>();
  auto elements = oracle["elements_1000_classes"].get<std::vector<std::uint64_t>>();
  constexpr std::size_t fc_bias_gradient = 0;
  constexpr std::size_t fc_weight_gradient = 1;
  elements[fc_bias_gradient] = classes;
  elements[fc_weight_gradient] = std::uint64_t{classes} * 2048;
  if (!fc_bias) {
    names.erase(names.begin());
    elements.erase(elements.begin());
  }
  ASSERT_EQ(step.gradients.size(), names.size());
  std::uint32_t kernel = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    SCOPED_TRACE(fmt::format("gradient {}", i));
    const Gradient& gradient = step.gradients[i];
    EXPECT_EQ(gradient.name, names[i]);
    EXPECT_EQ(gradient.elements, elements[i]);
    EXPECT_EQ(graph.parameters[gradient.parameter].name, names[i]);
    EXPECT_GE(gradient.kernel, kernel) << "gradients are finished in production order";
    kernel = gradient.kernel;
    EXPECT_EQ(step.kernels[kernel].op, graph.parameters[gradient.parameter].owner);
    EXPECT_EQ(step.kernels[kernel].phase, Phase::backward);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, ProductionOrder,
                         testing::Values(GradientForm{1000, true}, GradientForm{1001, true}, GradientForm{1000, false}),
                         [](const auto& info) {
                           return fmt::format("classes_{}_{}", info.param.classes,
                                              info.param.fc_bias ? "bias" : "no_bias");
                         });

TEST(Oracle, BytesOfTheVendorsRecord) {
  // 161 gradients of 102,236,324 bytes in fp32 at 1001 classes, the first 4004 and the last 37,632 bytes.
  const Program step = lower(make_model({.name = "resnet50", .batch = 32, .classes = 1001}), {});
  Bytes bytes = 0;
  for (const Gradient& gradient : step.gradients) bytes += gradient.elements * size_of(gradient.dtype);
  EXPECT_EQ(step.gradients.size(), 161U);
  EXPECT_EQ(bytes, 102'236'324U);
  EXPECT_EQ(step.gradients.front().elements * 4, 4004U);
  EXPECT_EQ(step.gradients.back().elements * 4, 37'632U);
}

}  // namespace
}  // namespace hcclsim::models
