#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/onnx/import.hpp"
#include "tests/models/onnx/wire.hpp"

// What of a file is trained.
namespace hcclsim::models::onnx {
namespace {

using ::testing::ElementsAre;

Graph with_weights(const ModelWriter& writer, const ImportOptions& options = {.batch = 2}) {
  return import_graph(writer.save(testing::TempDir() + "weights.onnx"), options);
}

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  return names;
}

TEST(OnnxWeights, FilesWithoutThemFillThem) {
  ModelWriter writer(9);
  writer.input("x", 1, {1, 3, 8, 8});
  const std::string conv =
      writer.node("Conv", "conv", {"x", writer.filled("w", {4, 3, 3, 3}, 0.02F), writer.filled("b", {4}, 0.02F)});
  const std::string norm = writer.node("BatchNormalization", "norm",
                                       {conv, writer.filled("scale", {4}, 0.02F), writer.filled("shift", {4}, 0.02F),
                                        writer.filled("mean", {4}, 0.02F), writer.filled("variance", {4}, 0.02F)});
  const std::string gain = writer.node("Unsqueeze", "gain", {writer.filled("g", {4}, 0.02F)}, {attrs("axes", {1, 2})});
  const std::string times = writer.node("Mul", "times", {norm, gain});
  const std::string zeros = writer.node("Add", "zeros", {times, writer.filled("none", {4, 1, 1}, 0)});
  const std::string flat = writer.node("Flatten", "flat", {zeros});
  // More numbers than are computed.
  const std::string turned = writer.node("Transpose", "turned", {writer.filled("fc", {1000, 144}, 0)});
  writer.node_to("y", "MatMul", "product", {flat, turned});
  writer.output("y");
  const Graph graph = with_weights(writer, {.batch = 1});
  EXPECT_THAT(names_of(graph), ElementsAre("w", "b", "scale", "shift", "g", "fc"));
  EXPECT_EQ(graph.parameter_elements(), 4U * 27 + 4 + 4 + 4 + 4 + 144'000);
}

TEST(OnnxWeights, NodesConstantBehindOtherAxesAndTypes) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 8});
  const std::string a = writer.node("Transpose", "a", {writer.weight_node("a.weight", {16, 8})});
  const std::string b = writer.node(
      "Cast", "b", {writer.node("Identity", "i", {writer.weight_node("b.weight", {16, 4})})}, {attr("to", 1)});
  const std::string c =
      writer.node("Reshape", "c", {writer.weight_node("c.bias", {2, 2}), writer.integers("row", {4})});
  const std::string hidden = writer.node("MatMul", "first", {"x", a});
  writer.node_to("y", "Add", "sum", {writer.node("MatMul", "second", {hidden, b}), c});
  writer.output("y");
  const Graph graph = with_weights(writer);
  EXPECT_THAT(names_of(graph), ElementsAre("a.weight", "b.weight", "c.bias"));
  EXPECT_EQ(graph.parameter_elements(), 16U * 8 + 16 * 4 + 4);
}

TEST(OnnxWeights, TransposedConvolutionsToOneChannelHaveTheirBias) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 6, 5, 5});
  writer.node_to("y", "ConvTranspose", "up",
                 {"x", writer.weight("up.weight", {6, 1, 2, 2}), writer.weight("up.bias", {1})},
                 {attrs("kernel_shape", {2, 2}), attrs("strides", {2, 2})});
  writer.output("y");
  const Graph graph = with_weights(writer);
  EXPECT_THAT(names_of(graph), ElementsAre("up.weight", "up.bias"));
  EXPECT_EQ(graph.parameter_elements(), 6U * 4 + 1);
  // Every pixel of the smaller image times the four weights of its six channels: 2·25·6·4 products.
  const MatrixProduct& product = graph.operators[1].product;
  EXPECT_EQ(product.m * product.n * product.k * product.groups, 2U * 25 * 6 * 4);
}

TEST(OnnxWeights, GroupsOfTransposedConvolutionsReadTheirOwnChannels) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 6, 5, 5});
  writer.node_to("y", "ConvTranspose", "up",
                 {"x", writer.weight("up.weight", {6, 2, 2, 2}), writer.weight("up.bias", {6})},
                 {attrs("kernel_shape", {2, 2}), attrs("strides", {2, 2}), attr("group", 3)});
  writer.output("y");
  const Graph graph = with_weights(writer);
  // Each of the six channels goes into the two of its group.
  const MatrixProduct& product = graph.operators[1].product;
  EXPECT_EQ(product.m * product.n * product.k * product.groups, 2U * 25 * 6 * 2 * 4);
  EXPECT_EQ(product.groups, 3U);
  EXPECT_EQ(graph.parameter_elements(), 6U * 2 * 4 + 6);
}

}  // namespace
}  // namespace hcclsim::models::onnx
