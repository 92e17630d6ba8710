#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.hpp"
#include "models/onnx/import.hpp"
#include "models/onnx/layers.hpp"
#include "tests/models/onnx/wire.hpp"

// Networks as exporters write them, beyond what the zoo's writer does.
namespace hcclsim::models::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int float_type = 1;
constexpr int int64_type = 7;

Graph exported(const ModelWriter& writer, const ImportOptions& options = {.batch = 2}) {
  return import_graph(writer.save(testing::TempDir() + "exported.onnx"), options);
}

std::string refusal_of(const ModelWriter& writer, const ImportOptions& options = {.batch = 2}) {
  try {
    static_cast<void>(exported(writer, options));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "onnx");
    return error.what();
  }
  return "accepted";
}

std::vector<std::string> kinds_of(const Graph& graph) {
  std::vector<std::string> kinds;
  for (const Operator& op : graph.operators) kinds.emplace_back(name_of(op.kind));
  return kinds;
}

/// Attention of two heads whose context is reshaped to sizes that are read from it, as Hugging Face's networks are
/// exported; `mask` is added to the scores.
ModelWriter attention_network(const std::function<std::string(ModelWriter&)>& mask) {
  ModelWriter writer;
  writer.input("x", float_type, {"batch", 6, 16});
  writer.input("attention_mask", float_type, {"batch", 6});
  const auto heads = [&](const std::string& name) {
    const std::string product = writer.node("MatMul", name, {"x", writer.weight(name + ".weight", {16, 16})});
    const std::string apart = writer.node("Reshape", name + "_apart", {product, writer.integers("s", {0, 0, 2, 8})});
    return writer.node("Transpose", name + "_heads", {apart}, {attrs("perm", {0, 2, 1, 3})});
  };
  const std::string query = heads("query");
  const std::string key = writer.node("Transpose", "turned", {heads("key")}, {attrs("perm", {0, 1, 3, 2})});
  const std::string scores = writer.node("MatMul", "scores", {query, key});
  const std::string scaled = writer.node("Div", "scaled", {scores, writer.real("root", 2.8F)});
  const std::string masked = writer.node("Add", "masked", {scaled, mask(writer)});
  const std::string soft = writer.node("Softmax", "softmax", {masked}, {attr("axis", -1)});
  const std::string context = writer.node("MatMul", "context", {soft, heads("value")});
  const std::string back = writer.node("Transpose", "back", {context}, {attrs("perm", {0, 2, 1, 3})});
  const std::string shape = writer.node("Shape", "shape", {back});
  const std::string batch = writer.node("Gather", "size0", {shape, writer.integers("zero", {0})}, {attr("axis", 0)});
  const std::string rows = writer.node("Gather", "size1", {shape, writer.integers("one", {1})}, {attr("axis", 0)});
  const std::string sizes =
      writer.node("Concat", "sizes", {batch, rows, writer.integers("all", {16})}, {attr("axis", 0)});
  const std::string flat = writer.node("Reshape", "flat", {back, sizes});
  writer.node_to("y", "MatMul", "out", {flat, writer.weight("out.weight", {16, 4})});
  writer.output("y");
  return writer;
}

const Operator* attention_of(const Graph& graph) {
  for (const Operator& op : graph.operators) {
    if (op.kind == OperatorKind::attention) return &op;
  }
  return nullptr;
}

TEST(OnnxExporters, SizesReadFromTheContextLeaveItAnAttention) {
  const Graph graph = exported(attention_network([](ModelWriter& writer) {
    return writer.node("Unsqueeze", "mask", {"attention_mask", writer.integers("axes", {1, 2})});
  }));
  std::vector<std::string> kinds = kinds_of(graph);
  std::erase(kinds, "reshape");
  EXPECT_THAT(kinds, ElementsAre("input", "linear", "linear", "linear", "attention", "linear", "loss"));
  const Operator* const found = attention_of(graph);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->heads, 2U);
  EXPECT_FALSE(found->causal);
}

// A mask of positions by positions is causal if a triangle is in it, not because it is square.
TEST(OnnxExporters, OnlyATriangleMakesAnAttentionCausal) {
  const auto is_causal = [](const std::function<std::string(ModelWriter&)>& mask) {
    const Graph graph = exported(attention_network(mask));
    return attention_of(graph) != nullptr && attention_of(graph)->causal;
  };
  EXPECT_FALSE(is_causal([](ModelWriter& writer) {
    const std::string row = writer.node("Unsqueeze", "row", {"attention_mask", writer.integers("axes", {1, 2})});
    return writer.node("Expand", "square", {row, writer.integers("square_sizes", {2, 1, 6, 6})});
  }));
  EXPECT_TRUE(is_causal([](ModelWriter& writer) {
    const std::string row = writer.node("Unsqueeze", "row", {"attention_mask", writer.integers("axes", {1, 2})});
    const std::string square = writer.node("Expand", "square", {row, writer.integers("square_sizes", {2, 1, 6, 6})});
    return writer.node("Trilu", "triangle", {square}, {attr("upper", 0)});
  }));
  EXPECT_TRUE(is_causal([](ModelWriter& writer) {
    const auto range = [&](const std::string& name) {
      return writer.node("Range", name,
                         {writer.integers("first", {0}, true), writer.integers("count", {6}, true),
                          writer.integers("step", {1}, true)});
    };
    const std::string column = writer.node("Unsqueeze", "column", {range("r1"), writer.integers("last", {1})});
    const std::string later = writer.node("GreaterOrEqual", "later", {column, range("r2")});
    return writer.node("Where", "hidden", {later, writer.real("shown", 0), writer.real("lowest", -1e9F)});
  }));
}

TEST(OnnxExporters, WeightsMayBeConstants) {
  ModelWriter writer;
  writer.input("x", float_type, {"batch", 8});
  const std::string hidden = writer.node("MatMul", "fc", {"x", writer.weight_node("fc.weight", {8, 16})});
  const std::string sum = writer.node("Add", "sum", {hidden, writer.weight_node("fc.bias", {16})});
  writer.node_to("y", "MatMul", "head", {sum, writer.weight_node("head.weight", {16, 4})});
  writer.output("y");
  const Graph graph = exported(writer);
  EXPECT_THAT(kinds_of(graph), ElementsAre("input", "linear", "linear", "loss"));
  EXPECT_EQ(graph.parameter_elements(), 8U * 16 + 16 + 16 * 4);
}

// As the attention of a decoder on what an encoder has made: one projection, of which a part is for queries.
TEST(OnnxExporters, PartsOfAWeightAreOneParameter) {
  ModelWriter writer;
  writer.input("x", float_type, {"batch", 4, 8});
  const std::string weight = writer.weight("in_proj.weight", {24, 8});
  const auto part = [&](const std::string& name, std::int64_t from, std::int64_t to) {
    const std::string rows = writer.node("Slice", name,
                                         {weight, writer.integers(name + "_from", {from}),
                                          writer.integers(name + "_to", {to}), writer.integers(name + "_axis", {0})});
    return writer.node("Transpose", name + "_turned", {rows}, {attrs("perm", {1, 0})});
  };
  const std::string query = writer.node("MatMul", "query", {"x", part("q", 0, 8)});
  const std::string rest = writer.node("MatMul", "rest", {"x", part("kv", 8, 24)});
  const std::string both = writer.node("Concat", "both", {query, rest}, {attr("axis", 2)});
  writer.node_to("y", "MatMul", "head", {both, writer.weight("head.weight", {24, 4})});
  writer.output("y");
  const Graph graph = exported(writer);
  ASSERT_EQ(graph.parameters.size(), 2U);
  EXPECT_EQ(graph.parameters[0].name, "in_proj.weight");
  EXPECT_EQ(graph.parameters[0].elements, 24U * 8);
  EXPECT_EQ(graph.parameters[1].elements, 24U * 4);
  std::vector<std::uint64_t> columns;
  for (const Operator& op : graph.operators) {
    if (op.kind != OperatorKind::product) continue;
    EXPECT_EQ(op.product.m, 2U * 4);
    EXPECT_EQ(op.product.k, 8U);
    columns.push_back(op.product.n);
  }
  EXPECT_THAT(columns, ElementsAre(8U, 16U));
}

TEST(OnnxExporters, EquationsAreProducts) {
  const auto product_of = [](const std::string& equation, const std::vector<std::int64_t>& weight) {
    ModelWriter writer;
    writer.input("x", float_type, {"batch", 6, 4, 8});
    writer.node_to("y", "Einsum", "sum", {"x", writer.weight("w", weight)}, {{.name = "equation", .text = equation}});
    writer.output("y");
    const Graph graph = exported(writer);
    return std::ranges::find(graph.operators, OperatorKind::product, &Operator::kind)->product;
  };
  // Rows of queries, columns of the weight, sums over the features; heads in groups.
  const MatrixProduct heads = product_of("bshd, hde -> bshe", {4, 8, 16});
  EXPECT_EQ(heads.m, 2U * 6);
  EXPECT_EQ(heads.n, 16U);
  EXPECT_EQ(heads.k, 8U);
  EXPECT_EQ(heads.groups, 4U);
  const MatrixProduct open = product_of("...d,de->...e", {8, 3});
  EXPECT_EQ(open.m, 2U * 6 * 4);
  EXPECT_EQ(open.n, 3U);
  EXPECT_EQ(open.groups, 1U);
  ModelWriter writer;
  writer.input("x", float_type, {"batch", 6});
  writer.node_to("y", "Einsum", "sum", {"x", writer.weight("w", {7, 4})}, {{.name = "equation", .text = "bi,ij->bj"}});
  writer.output("y");
  EXPECT_THAT(refusal_of(writer), HasSubstr("node 'sum' (Einsum)"));
}

// Tables of positions are computed, and take no time, whatever computes them.
TEST(OnnxExporters, ShapesDependOnNumbersThatAreComputed) {
  ModelWriter writer;
  writer.input("x", float_type, {"batch", 3, 4, 4});
  const std::string kernel = writer.weight("conv.weight", {5, 3, 3, 3});
  const std::string conv = writer.node("Conv", "conv", {"x", kernel}, {attrs("pads", {1, 1, 1, 1})});
  const std::string shape = writer.node("Shape", "shape", {conv});
  const auto cut = [&](const std::string& name, std::int64_t from, std::int64_t to, std::int64_t step) {
    return writer.node("Slice", name,
                       {shape, writer.integers(name + "_from", {from}), writer.integers(name + "_to", {to}),
                        writer.integers(name + "_axis", {0}), writer.integers(name + "_step", {step})});
  };
  // 4x4 backwards, of which the sum with itself is 8x8; the first two sizes are taken as they are.
  const std::string backwards = cut("backwards", -1, 1, -1);
  const std::string twice = writer.node("Add", "twice", {backwards, backwards});
  const std::string sizes = writer.node("Concat", "sizes", {cut("first", 0, 2, 1), twice}, {attr("axis", 0)});
  const std::string larger = writer.node("Resize", "larger", {conv, "", "", sizes});
  const std::string pooled = writer.node("GlobalAveragePool", "pool", {larger});
  const std::string flat = writer.node("Flatten", "flat", {pooled});
  writer.node_to("y", "Gemm", "fc", {flat, writer.weight("fc.weight", {5, 4})});
  writer.output("y");
  const Graph graph = exported(writer);
  EXPECT_EQ(graph.operators[2].shape(), (Shape{2, 5, 8, 8}));
}

// Sets that are newer than the library: axes of reductions are inputs, curves are operators.
TEST(OnnxExporters, NewerOperatorSetsAreRead) {
  ModelWriter writer(20);
  writer.input("x", float_type, {"batch", 4, 8});
  const std::string hidden = writer.node("MatMul", "fc", {"x", writer.weight("fc.weight", {8, 16})});
  const std::string curve = writer.node("Gelu", "curve", {hidden});
  const std::string mean =
      writer.node("ReduceMean", "mean", {curve, writer.integers("axes", {1})}, {attr("keepdims", 0)});
  const std::vector<std::string> parts =
      writer.nodes("Split", "split", {mean}, 2, {attr("axis", 1), attr("num_outputs", 2)});
  const std::string sum = writer.node("Add", "sum", parts);
  writer.node_to("y", "MatMul", "head", {sum, writer.weight("head.weight", {8, 4})});
  writer.output("y");
  const Graph graph = exported(writer);
  EXPECT_THAT(kinds_of(graph),
              ElementsAre("input", "reshape", "linear", "gelu", "vector", "split", "add", "linear", "loss"));
  ModelWriter later(20);
  later.input("x", float_type, {"batch", 8});
  later.node_to("y", "GroupNormalization", "norm", {"x", later.weight("w", {8}), later.weight("b", {8})});
  later.output("y");
  EXPECT_THAT(refusal_of(later), HasSubstr("operator GroupNormalization of domain ai.onnx, set 20: it is not known"));
}

TEST(OnnxExporters, ResultsButTheFirstAreCopied) {
  ModelWriter writer;
  writer.input("x", float_type, {"batch", 8});
  const std::string hidden = writer.node("MatMul", "fc", {"x", writer.weight("fc.weight", {8, 6})});
  const std::vector<std::string> parts = writer.nodes("Split", "split", {hidden}, 2, {attr("axis", 0)});
  writer.output(parts[0]);
  writer.output(parts[1]);
  EXPECT_EQ(exported(writer).parameters.size(), 1U);
  ModelWriter norm;
  norm.input("x", float_type, {"batch", 4, 8});
  const std::vector<std::string> three =
      norm.nodes("LayerNormalization", "norm", {"x", norm.weight("w", {8}), norm.weight("b", {8})}, 3, {});
  for (const std::string& output : three) norm.output(output);
  EXPECT_EQ(exported(norm).parameter_elements(), 16U);
}

TEST(OnnxExporters, LinesOfPixelsAreNormalisedAsImages) {
  ModelWriter writer;
  writer.input("x", float_type, {"batch", 3, 12});
  const std::string conv = writer.node("Conv", "conv", {"x", writer.weight("conv.weight", {5, 3, 3})});
  const std::string norm = writer.node("BatchNormalization", "norm",
                                       {conv, writer.weight("norm.weight", {5}), writer.weight("norm.bias", {5}),
                                        writer.weight("norm.mean", {5}), writer.weight("norm.var", {5})});
  const std::string flat = writer.node("Flatten", "flat", {norm});
  writer.node_to("y", "Gemm", "fc", {flat, writer.weight("fc.weight", {50, 4})});
  writer.output("y");
  const Graph graph = exported(writer);
  EXPECT_EQ(std::ranges::count(kinds_of(graph), "batch_norm"), 1);
  EXPECT_EQ(graph.parameter_elements(), 5U * 3 * 3 + 5 + 5 + 50 * 4);
}

TEST(OnnxExporters, TokensOfADecoderHaveATableOfTheirOwnOrThatOfTheBatch) {
  for (const bool shared : {true, false}) {
    ModelWriter writer;
    writer.input("input_ids", int64_type, {"batch", 6});
    writer.input("decoder_input_ids", int64_type, {"batch", 4});
    const std::string table = writer.weight("table", {100, 8});
    const std::string other = shared ? table : writer.weight("other", {90, 8});
    const auto mean = [&](const std::string& from, const std::string& ids, const std::string& name) {
      const std::string rows = writer.node("Gather", name, {from, ids});
      return writer.node("ReduceMean", name + "_mean", {rows}, {attrs("axes", {1}), attr("keepdims", 0)});
    };
    const std::string sum =
        writer.node("Add", "sum", {mean(table, "input_ids", "first"), mean(other, "decoder_input_ids", "second")});
    writer.node_to("y", "Gemm", "fc", {sum, writer.weight("fc.weight", {8, 4})});
    writer.output("y");
    EXPECT_EQ(exported(writer).parameter_elements(), 100U * 8 + (shared ? 0 : 90 * 8) + 8 * 4);
  }
}

TEST(OnnxExporters, WhatCannotBeTrainedIsRefused) {
  ModelWriter nothing;
  nothing.input("x", float_type, {"batch", 8});
  nothing.node_to("y", "Relu", "relu", {"x"});
  nothing.output("y");
  EXPECT_THAT(refusal_of(nothing), HasSubstr("there is nothing to train"));
  ModelWriter unnamed;
  unnamed.input("x", float_type, {"batch", "?", 8, "width"});
  unnamed.node_to("y", "MatMul", "fc", {"x", unnamed.weight("w", {7, 4})});
  unnamed.output("y");
  EXPECT_THAT(refusal_of(unnamed),
              HasSubstr("does not say how large x.1, width are; give --onnx-dim x.1=128,width=128"));
  EXPECT_EQ(exported(unnamed, {.batch = 2, .dims = {{"x.1", 3}, {"width", 7}}}).parameter_elements(), 28U);
  ModelWriter branch;
  branch.input("x", float_type, {"batch", 8});
  branch.node_to("y", "If", "branch", {branch.node("Gemm", "fc", {"x", branch.weight("w", {8, 4})})},
                 {{.name = "then_branch", .graph = true}, {.name = "else_branch", .graph = true}});
  branch.output("y");
  EXPECT_THAT(refusal_of(branch), HasSubstr("node 'branch' (If): operator If of domain ai.onnx, set 17: its condition "
                                            "is not known before it runs"));
}

TEST(OnnxExporters, AnIfHasTheShapeThatItsBranchesSay) {
  const auto written = [](const std::vector<Dim>& dims) {
    ModelWriter branch;
    branch.input("x", float_type, {2, 8});
    branch.input("condition", float_type, {1});
    const std::string before = branch.node("Gemm", "fc", {"x", branch.weight("w", {8, 4})});
    branch.node_to("chosen", "If", "branch", {"condition"},
                   {{.name = "then_branch", .graph = true, .graph_reads = before, .graph_output = dims},
                    {.name = "else_branch", .graph = true, .graph_reads = before, .graph_output = dims}});
    branch.node_to("y", "Gemm", "last", {"chosen", branch.weight("v", {4, 3})});
    branch.output("y");
    return branch;
  };
  EXPECT_EQ(exported(written({2, 4}), {.batch = 2, .unsupported = 1e-5}).parameter_elements(), 8U * 4 + 4 * 3);
  EXPECT_THAT(refusal_of(written({}), {.batch = 2, .unsupported = 1e-5}),
              HasSubstr("node 'branch' (If): neither the file nor its branches say the shape of 'chosen' in numbers"));
}

TEST(OnnxLayers, PathsOfNodesAreThoseOfWeights) {
  EXPECT_EQ(layer_of("/features/features.1/features.1.1/block/block.1/Transpose"), "features.1");
  EXPECT_EQ(layer_of("features.1.1.block.3.weight"), "features.1");
  EXPECT_EQ(layer_of("/model/layers.2/MatMul"), "model.layers.2");
  EXPECT_EQ(layer_of("/layer1/layer1.0/conv1/Conv"), "layer1.0");
}

}  // namespace
}  // namespace hcclsim::models::onnx
