#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "models/onnx/import.hpp"
#include "tests/models/onnx/wire.hpp"

// Operators of com.microsoft, as optimizers of ONNX Runtime write them.
namespace hcclsim::models::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* microsoft = "com.microsoft";

Graph fused_network(ModelWriter& writer, const std::string& last, std::int64_t features) {
  writer.node_to("y", "MatMul", "head", {last, writer.weight("head.weight", {features, 4})});
  writer.output("y");
  return import_graph(writer.save(testing::TempDir() + "fused.onnx"), {.batch = 2});
}

std::vector<std::string> kinds_in(const Graph& graph) {
  std::vector<std::string> kinds;
  for (const Operator& op : graph.operators) {
    if (op.kind != OperatorKind::reshape) kinds.emplace_back(name_of(op.kind));  // which takes no time
  }
  return kinds;
}

const Operator& operator_in(const Graph& graph, OperatorKind kind) {
  for (const Operator& op : graph.operators) {
    if (op.kind == kind) return op;
  }
  ADD_FAILURE() << "no such operator";
  return graph.operators.front();
}

TEST(OnnxFused, AttentionOfPackedWeights) {
  for (const std::int64_t causal : {0, 1}) {
    ModelWriter writer(13);
    writer.input("x", 1, {"batch", 6, 16});
    writer.input("mask", 6, {"batch", 6});
    const std::string context = writer.node(
        "Attention", "attention", {"x", writer.weight("qkv.weight", {16, 48}), writer.weight("qkv.bias", {48}), "mask"},
        {attr("num_heads", 2), attr("unidirectional", causal)}, microsoft);
    const Graph graph = fused_network(writer, context, 16);
    EXPECT_THAT(kinds_in(graph), ElementsAre("input", "linear", "attention", "linear", "loss"));
    const Operator& attention = operator_in(graph, OperatorKind::attention);
    EXPECT_EQ(attention.heads, 2U);
    EXPECT_EQ(attention.sequence, 6U);
    EXPECT_EQ(attention.causal, causal != 0);
    EXPECT_EQ(graph.parameter_elements(), 16U * 48 + 48 + 16 * 4);
  }
}

TEST(OnnxFused, AttentionOfSeveralRows) {
  ModelWriter writer(13);
  writer.input("x", 1, {"batch", 6, 16});
  const auto rows = [&](const std::string& name) {
    return writer.node("MatMul", name, {"x", writer.weight(name + ".weight", {16, 16})});
  };
  const std::string context = writer.node("MultiHeadAttention", "attention", {rows("q"), rows("k"), rows("v")},
                                          {attr("num_heads", 4)}, microsoft);
  const Graph graph = fused_network(writer, context, 16);
  EXPECT_THAT(kinds_in(graph), ElementsAre("input", "linear", "linear", "linear", "attention", "linear", "loss"));
  EXPECT_EQ(operator_in(graph, OperatorKind::attention).heads, 4U);
}

TEST(OnnxFused, GroupedAttentionWithRotaryPositions) {
  ModelWriter writer(14);
  writer.input("x", 1, {"batch", 6, 16});
  const auto rows = [&](const std::string& name, std::int64_t features) {
    return writer.node("MatMul", name, {"x", writer.weight(name + ".weight", {16, features})});
  };
  const std::vector<std::string> made = {
      writer.node("GroupQueryAttention", "attention",
                  {rows("q", 16), rows("k", 8), rows("v", 8), "", "", "", "", writer.weight("cos_cache", {32, 2}),
                   writer.weight("sin_cache", {32, 2})},
                  {attr("num_heads", 4), attr("kv_num_heads", 2), attr("do_rotary", 1)}, microsoft)};
  const Graph graph = fused_network(writer, made[0], 16);
  EXPECT_THAT(kinds_in(graph),
              ElementsAre("input", "linear", "linear", "linear", "rotary", "rotary", "attention", "linear", "loss"));
  const Operator& attention = operator_in(graph, OperatorKind::attention);
  EXPECT_EQ(attention.heads, 4U);
  EXPECT_EQ(attention.kv_heads, 2U);
  EXPECT_TRUE(attention.causal);
  EXPECT_EQ(graph.parameter_elements(), 16U * (16 + 8 + 8 + 4));
}

TEST(OnnxFused, NormsOfSums) {
  ModelWriter writer(13);
  writer.input("x", 1, {"batch", 6, 16});
  const std::string a = writer.node("MatMul", "a", {"x", writer.weight("a.weight", {16, 16})});
  const std::string b = writer.node(
      "SkipLayerNormalization", "b",
      {a, "x", writer.weight("b.weight", {16}), writer.weight("b.bias", {16}), writer.weight("a.bias", {16})}, {},
      microsoft);
  const std::string c =
      writer.node("SkipSimplifiedLayerNormalization", "c", {b, a, writer.weight("c.weight", {16})}, {}, microsoft);
  const std::string d = writer.node("SimplifiedLayerNormalization", "d", {c, writer.weight("d.weight", {16})});
  const std::string e =
      writer.node("LayerNormalization", "e", {d, writer.weight("e.weight", {16}), writer.weight("e.bias", {16})});
  const Graph graph = fused_network(writer, e, 16);
  EXPECT_EQ(graph.parameter_elements(), 256U + 3 * 16 + 16 + 16 + 2 * 16 + 64);
  const std::vector<std::string> kinds = kinds_in(graph);
  EXPECT_EQ(std::ranges::count(kinds, "layer_norm"), 2);
  EXPECT_EQ(std::ranges::count(kinds, "rms_norm"), 2);
}

TEST(OnnxFused, CurvesAndProducts) {
  ModelWriter writer(13);
  writer.input("x", 1, {"batch", 6, 16});
  const std::string a =
      writer.node("FusedMatMul", "a", {"x", writer.weight("a.weight", {32, 16})}, {attr("transB", 1)}, microsoft);
  const std::string b = writer.node("BiasGelu", "b", {a, writer.weight("a.bias", {32})}, {}, microsoft);
  const std::string c = writer.node("FastGelu", "c", {b}, {}, microsoft);
  const std::string d = writer.node("QuickGelu", "d", {c}, {}, microsoft);
  const Graph graph = fused_network(writer, d, 32);
  // A product with its bias, two GELUs, and x · σ(1.702 · x) in three steps.
  EXPECT_THAT(kinds_in(graph),
              ElementsAre("input", "linear", "gelu", "gelu", "vector", "vector", "vector", "linear", "loss"));
  EXPECT_EQ(graph.parameter_elements(), 16U * 32 + 32 + 32 * 4);
}

TEST(OnnxFused, EmbeddingsWithTheirNorm) {
  ModelWriter writer(13);
  writer.input("tokens", 6, {"batch", 6});
  writer.input("segments", 6, {"batch", 6});
  const std::string rows = writer.node(
      "EmbedLayerNormalization", "embeddings",
      {"tokens", "segments", writer.weight("word", {100, 16}), writer.weight("position", {12, 16}),
       writer.weight("segment", {2, 16}), writer.weight("norm.weight", {16}), writer.weight("norm.bias", {16})},
      {}, microsoft);
  const Graph graph = fused_network(writer, rows, 16);
  EXPECT_THAT(kinds_in(graph), ElementsAre("input", "token_embedding", "position_embedding", "segment_embedding",
                                           "layer_norm", "linear", "loss"));
  EXPECT_EQ(graph.parameter_elements(), 16U * (100 + 12 + 2 + 1 + 1 + 4));
}

TEST(OnnxFused, OtherFormsAreRefused) {
  ModelWriter writer(13);
  writer.input("x", 1, {"batch", 6, 16});
  writer.input("past", 1, {2, "batch", 2, 3, 8});
  const std::string context = writer.node("Attention", "attention", {"x", writer.weight("w", {16, 48}), "", "", "past"},
                                          {attr("num_heads", 2)}, microsoft);
  try {
    static_cast<void>(fused_network(writer, context, 16));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("node 'attention' (Attention): operator Attention of domain com.microsoft"));
  }
}

TEST(OnnxFused, ReductionsOverNoAxesReduceNothing) {
  ModelWriter writer(18);
  writer.input("x", 1, {"batch", 8});
  const std::string hidden = writer.node("MatMul", "fc", {"x", writer.weight("fc.weight", {8, 6})});
  const std::string same =
      writer.node("ReduceMean", "same", {hidden, writer.integers("none", {})}, {attr("noop_with_empty_axes", 1)});
  const std::string mean = writer.node("ReduceMean", "mean", {same, writer.integers("last", {1})},
                                       {attr("keepdims", 1), attr("noop_with_empty_axes", 1)});
  const std::string scaled = writer.node("Mul", "scaled", {same, mean});
  const Graph graph = fused_network(writer, scaled, 6);
  EXPECT_THAT(kinds_in(graph), ElementsAre("input", "linear", "vector", "vector", "linear", "loss"));
  EXPECT_EQ(graph.operators[2].work.forward, 12U);
  EXPECT_EQ(graph.operators[2].shape(), (Shape{2, 1}));
}

}  // namespace
}  // namespace hcclsim::models::onnx
