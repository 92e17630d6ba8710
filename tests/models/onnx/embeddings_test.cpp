#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/error.hpp"
#include "models/onnx/import.hpp"
#include "tests/models/onnx/wire.hpp"

// What a network reads: several inputs, tokens behind other axes, tables of positions and segments; images that are
// padded as TensorFlow pads them; operators that a file describes itself.
namespace hcclsim::models::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int floats = 1;
constexpr int whole_numbers = 7;

Graph graph_of(const ModelWriter& writer, const ImportOptions& options = {.batch = 2}) {
  return import_graph(writer.save(testing::TempDir() + "inputs.onnx"), options);
}

std::vector<std::string> parameter_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  return names;
}

std::vector<std::string> operator_kinds(const Graph& graph) {
  std::vector<std::string> kinds;
  for (const Operator& op : graph.operators) kinds.emplace_back(name_of(op.kind));
  return kinds;
}

std::string fully_connected(ModelWriter& writer, const std::string& name, const std::string& x, std::int64_t in,
                            std::int64_t out) {
  return writer.node("Gemm", name,
                     {x, writer.weight(name + ".weight", {in, out}), writer.weight(name + ".bias", {out})});
}

std::string projected(ModelWriter& writer, const std::string& name, const std::string& x, std::int64_t in,
                      std::int64_t out) {
  return writer.node("MatMul", name, {x, writer.weight(name + ".weight", {in, out})});
}

TEST(OnnxInputs, OtherInputsThatOperatorsWithWeightsReadArePartsOfTheBatch) {
  // A recommender: categories are the batch, dense features another input with layers of its own.
  ModelWriter writer;
  writer.input("dense", floats, {"N", 13});
  writer.input("category0", whole_numbers, {"N"});
  writer.input("category1", whole_numbers, {"N"});
  const std::string bottom = writer.node("Relu", "relu", {fully_connected(writer, "bottom", "dense", 13, 64)});
  const std::string first = writer.node("Gather", "look0", {writer.weight("table0.weight", {1000, 64}), "category0"});
  const std::string second = writer.node("Gather", "look1", {writer.weight("table1.weight", {100, 64}), "category1"});
  const std::string joined = writer.node("Concat", "joined", {bottom, first, second}, {attr("axis", 1)});
  writer.output(fully_connected(writer, "top", joined, 192, 1));
  const Graph graph = graph_of(writer);
  EXPECT_THAT(parameter_names(graph),
              ElementsAre("bottom.weight", "bottom.bias", "table0.weight", "table1.weight", "top.weight", "top.bias"));
  EXPECT_EQ(std::ranges::count(operator_kinds(graph), "linear"), 2);
}

TEST(OnnxInputs, PositionsOfRotaryAnglesAreNoPartOfTheBatch) {
  ModelWriter writer;
  writer.input("tokens", whole_numbers, {"N", 8});
  writer.input("positions", floats, {8, 1});
  const std::string x = writer.node("Gather", "look", {writer.weight("table.weight", {50, 16}), "tokens"});
  const std::string angles = writer.node("MatMul", "angles", {"positions", writer.weight("frequencies", {1, 16})});
  writer.output(
      projected(writer, "head", writer.node("Mul", "turned", {x, writer.node("Cos", "cosine", {angles})}), 16, 4));
  EXPECT_THAT(parameter_names(graph_of(writer)), ElementsAre("table.weight", "head.weight"));
}

TEST(OnnxInputs, TokensBehindOtherAxesAreLookedUp) {
  // As Hugging Face's GPT-2 has it: tokens and positions are given other axes, and positions of one sequence.
  ModelWriter writer;
  writer.input("mask", floats, {"N", 6});
  writer.input("tokens", whole_numbers, {"N", 6});
  const std::string flat = writer.node("Reshape", "flat", {"tokens", writer.integers("shape", {-1, 6})});
  const std::string x = writer.node("Gather", "wte", {writer.weight("wte.weight", {50, 16}), flat});
  const std::string rows = writer.node(
      "Gather", "wpe", {writer.weight("wpe.weight", {10, 16}), writer.integers("positions", {0, 1, 2, 3, 4, 5})});
  const std::string lifted = writer.node("Unsqueeze", "lifted", {rows, writer.integers("axis", {0})});
  const std::string sum = writer.node("Add", "sum", {x, lifted});
  writer.output(projected(writer, "head", writer.node("Relu", "relu", {sum}), 16, 4));
  const Graph graph = graph_of(writer);
  EXPECT_THAT(operator_kinds(graph),
              ElementsAre("input", "token_embedding", "position_embedding", "relu", "linear", "loss"));
  EXPECT_THAT(parameter_names(graph), ElementsAre("wte.weight", "wpe.weight", "head.weight"));
}

TEST(OnnxInputs, RowsThatAreAddedToEachOtherFirstKeepTheirTables) {
  ModelWriter writer;
  writer.input("tokens", whole_numbers, {"N", 6});
  writer.input("segments", whole_numbers, {"N", 6});
  const std::string rows = writer.node(
      "Gather", "wpe", {writer.weight("wpe.weight", {10, 16}), writer.integers("positions", {0, 1, 2, 3, 4, 5})});
  const std::string kinds = writer.node("Gather", "type", {writer.weight("type.weight", {2, 16}), "segments"});
  const std::string both = writer.node("Add", "both", {kinds, rows});
  const std::string x = writer.node("Gather", "wte", {writer.weight("wte.weight", {50, 16}), "tokens"});
  writer.output(projected(writer, "head", writer.node("Add", "sum", {both, x}), 16, 4));
  const Graph graph = graph_of(writer);
  EXPECT_THAT(operator_kinds(graph),
              ElementsAre("input", "token_embedding", "segment_embedding", "position_embedding", "linear", "loss"));
  EXPECT_EQ(graph.parameters.at(1).elements, 2U * 16);
  EXPECT_EQ(graph.parameters.at(2).elements, 10U * 16);
}

TEST(OnnxInputs, TablesAndLayersOfRelativePositionsAreTrained) {
  ModelWriter writer;
  writer.input("x", floats, {"N", 4, 4});
  // A table, looked up for every pair of four positions, and a layer that makes as much of coordinates.
  const std::string looked_up = writer.node(
      "Gather", "look", {writer.weight("table", {7, 2}), writer.integers("pairs", std::vector<std::int64_t>(16, 3))});
  const std::string made =
      writer.node("MatMul", "mlp", {writer.weight("coordinates", {16, 5}), writer.weight("mlp.weight", {5, 2})});
  const auto per_head = [&](const std::string& name, const std::string& of) {
    const std::string square = writer.node("Reshape", name + "_square", {of, writer.integers("square", {4, 4, 2})});
    return writer.node("Transpose", name + "_heads", {square}, {attrs("perm", {2, 0, 1})});
  };
  const std::string heads = writer.node("Unsqueeze", "apart", {"x", writer.integers("axis", {1})});
  const std::string biased = writer.node("Add", "biased", {heads, per_head("table", looked_up)});
  const std::string twice = writer.node("Add", "twice", {biased, per_head("made", made)});
  writer.output(projected(writer, "head", twice, 4, 3));
  EXPECT_THAT(parameter_names(graph_of(writer)), testing::UnorderedElementsAre("table", "mlp.weight", "head.weight"));
}

TEST(OnnxInputs, TensorFlowsLayerNormIsOne) {
  ModelWriter writer(13);
  writer.input("x", floats, {"N", 6, 16});
  const std::string x = writer.node("MatMul", "first", {"x", writer.weight("first/kernel", {16, 16})});
  const auto reduced = [&](const std::string& name, const std::string& of) {
    return writer.node("ReduceMean", name, {of}, {attrs("axes", {-1}), attr("keepdims", 1)});
  };
  const std::string mean = reduced("mean", x);
  const std::string difference = writer.node("Sub", "difference", {x, mean});
  const std::string variance = reduced("variance", writer.node("Mul", "squares", {difference, difference}));
  const std::string root =
      writer.node("Sqrt", "root", {writer.node("Add", "wide", {variance, writer.real("epsilon", 1e-5F)})});
  const std::string scale =
      writer.node("Mul", "scale", {writer.node("Reciprocal", "inverse", {root}), writer.weight("norm/gamma", {16})});
  const std::string shift =
      writer.node("Sub", "shift", {writer.weight("norm/beta", {16}), writer.node("Mul", "scaled_mean", {mean, scale})});
  const std::string normed = writer.node("Add", "normed", {writer.node("Mul", "scaled", {x, scale}), shift});
  writer.output(projected(writer, "head", normed, 16, 4));
  EXPECT_THAT(operator_kinds(graph_of(writer)),
              ElementsAre("input", "reshape", "linear", "layer_norm", "linear", "loss"));
}

TEST(OnnxImages, UnevenPaddingIsThatOfAConvolutionOfTheSameSize) {
  // 224 pixels, window 7, stride 2: TensorFlow fills up with 2 and 3, and makes 112.
  const auto network = [](const std::vector<Attr>& attributes) {
    ModelWriter writer;
    writer.input("x", floats, {"N", 3, 224, 224});
    const std::string y = writer.node("Conv", "conv", {"x", writer.weight("conv.weight", {8, 3, 7, 7})}, attributes);
    const std::string pooled = writer.node("GlobalAveragePool", "pool", {y});
    writer.output(fully_connected(writer, "head", writer.node("Flatten", "flat", {pooled}), 8, 4));
    return graph_of(writer);
  };
  const Graph stated = network({attrs("strides", {2, 2}), attrs("pads", {3, 3, 3, 3})});
  const Graph same = network({attrs("strides", {2, 2}), {.name = "auto_pad", .text = "SAME_UPPER"}});
  const Graph uneven = network({attrs("strides", {2, 2}), attrs("pads", {2, 2, 3, 3})});
  for (const Graph* graph : {&same, &uneven}) {
    const Operator& convolution = graph->operators.at(1);
    EXPECT_EQ(convolution.kind, OperatorKind::convolution);
    EXPECT_EQ(convolution.window.padding, 3U);
    EXPECT_EQ(convolution.outputs[0].shape, stated.operators.at(1).outputs[0].shape);
  }
}

/// A function's node, whose attribute is that of the call of the same name.
Message node_with_attribute(const std::string& type, const std::string& input, const std::string& output,
                            const std::string& attribute) {
  return Message()
      .bytes(1, input)
      .bytes(2, output)
      .bytes(3, "inner")
      .bytes(4, type)
      .message(5, Message().bytes(1, attribute).bytes(21, attribute).number(20, 2));
}

Message plain_node(const std::string& type, const std::string& input, const std::string& output,
                   const std::string& domain = "") {
  Message node;
  node.bytes(1, input).bytes(2, output).bytes(3, type + "_inside").bytes(4, type);
  if (!domain.empty()) node.bytes(7, domain);
  return node;
}

TEST(OnnxFiles, NumbersOfLargeWeightsAreSkipped) {
  ModelWriter writer;
  writer.input("x", floats, {"N", 1000});
  writer.output(writer.node("MatMul", "head", {"x", writer.weight_with_numbers("head.weight", {1000, 400})}));
  const Graph graph = graph_of(writer);
  ASSERT_EQ(graph.parameters.size(), 1U);
  EXPECT_EQ(graph.parameters[0].elements, 400'000U);
  // The file ends among the numbers, at their end, and behind the first bytes of all.
  const std::string whole = writer.finish();
  for (const std::size_t length : {whole.size() / 2, whole.size() - 1, std::size_t{3}}) {
    const std::string path = testing::TempDir() + "part.onnx";
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    try {
      static_cast<void>(import_graph(path, {.batch = 2}));
      FAIL() << length;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("is no file of ONNX, or only a part of one")) << length;
    }
  }
}

TEST(OnnxFunctions, TheirNodesStandInThePlaceOfTheirCalls) {
  ModelWriter writer;
  writer.function("Curve", {"a"}, "b", {plain_node("Relu", "a", "middle"), plain_node("Tanh", "middle", "b")});
  writer.function("Twice", {"a"}, "b",
                  {plain_node("Curve", "a", "middle", "local"), plain_node("Curve", "middle", "b", "local")});
  writer.function("Flat", {"a"}, "b", {node_with_attribute("Flatten", "a", "b", "axis")});
  writer.input("x", floats, {"N", 4, 8});
  const std::string flat = writer.node("Flat", "flat", {"x"}, {attr("axis", 1)}, "local");
  const std::string curved =
      writer.node("Twice", "twice", {fully_connected(writer, "first", flat, 32, 16)}, {}, "local");
  writer.output(fully_connected(writer, "head", curved, 16, 4));
  const Graph graph = graph_of(writer);
  EXPECT_THAT(operator_kinds(graph), ElementsAre("input", "linear", "relu", "tanh", "relu", "tanh", "linear", "loss"));
  // Each call by its own name; the second of the two is not the first again.
  EXPECT_EQ(graph.operators.at(2).name, "twice/Curve_inside/Relu_inside");
  EXPECT_EQ(graph.operators.at(4).name, "twice/Curve_inside_2/Relu_inside");
}

TEST(OnnxFunctions, BadOnesAreRefused) {
  const auto message = [](const std::vector<Message>& nodes, const std::vector<std::string>& inputs) {
    ModelWriter writer;
    writer.function("Odd", {"a"}, "b", nodes);
    writer.input("x", floats, {"N", 8});
    const std::string x = fully_connected(writer, "first", "x", 8, 8);
    std::vector<std::string> given{x};
    given.insert(given.end(), inputs.begin(), inputs.end());
    writer.output(fully_connected(writer, "head", writer.node("Odd", "odd", given, {}, "local"), 8, 4));
    try {
      static_cast<void>(graph_of(writer));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "onnx");
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message({plain_node("Odd", "a", "b", "local")}, {}), HasSubstr("function Odd calls itself"));
  EXPECT_THAT(message({plain_node("Relu", "a", "b")}, {"x"}), HasSubstr("calls function Odd with 2 inputs"));
  EXPECT_THAT(message({plain_node("Relu", "nobody", "b")}, {}), HasSubstr("reads 'odd/nobody'"));
  EXPECT_THAT(message({}, {}), HasSubstr("head"));
}

}  // namespace
}  // namespace hcclsim::models::onnx
