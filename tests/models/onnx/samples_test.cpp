#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "models/onnx/import.hpp"
#include "tests/models/onnx/wire.hpp"

// Files whose batch is fixed, with another one.
namespace hcclsim::models::onnx {
namespace {

Graph with_samples(const ModelWriter& writer, std::uint32_t batch) {
  return import_graph(writer.save(testing::TempDir() + "samples.onnx"), {.batch = batch});
}

const Operator& last_of_kind(const Graph& graph, OperatorKind kind) {
  const auto found = std::find_if(graph.operators.rbegin(), graph.operators.rend(),
                                  [&](const Operator& op) { return op.kind == kind; });
  if (found != graph.operators.rend()) return *found;
  ADD_FAILURE() << "no such operator";
  return graph.operators.front();
}

/// Shapes, kinds and work of all operators, and parameters.
void expect_same_networks(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.operators.size(), b.operators.size());
  for (std::size_t i = 0; i < a.operators.size(); ++i) {
    EXPECT_EQ(a.operators[i].kind, b.operators[i].kind) << a.operators[i].name;
    if (!a.operators[i].outputs.empty()) {
      EXPECT_EQ(a.operators[i].shape(), b.operators[i].shape()) << a.operators[i].name;
    }
    EXPECT_EQ(a.operators[i].work.forward, b.operators[i].work.forward) << a.operators[i].name;
    EXPECT_EQ(a.operators[i].sequence, b.operators[i].sequence) << a.operators[i].name;
  }
  EXPECT_EQ(a.parameter_elements(), b.parameter_elements());
}

/// A convolution, channels shuffled in two groups, and a classifier, with the batch in the constants of reshapes.
ModelWriter shuffle_network(std::int64_t fixed) {
  ModelWriter writer;
  writer.input("x", 1, {fixed > 0 ? Dim(fixed) : Dim("batch"), 3, 8, 8});
  const std::int64_t n = fixed > 0 ? fixed : 6;
  const std::string conv = writer.node("Conv", "conv", {"x", writer.weight("conv.weight", {4, 3, 3, 3})});
  const std::string apart = writer.node("Reshape", "apart", {conv, writer.integers("a", {n, 2, 2, 6, 6})});
  const std::string turned = writer.node("Transpose", "turned", {apart}, {attrs("perm", {0, 2, 1, 3, 4})});
  const std::string joined = writer.node("Reshape", "joined", {turned, writer.integers("j", {n, 4, 6, 6})});
  const std::string flat = writer.node("Reshape", "flat", {joined, writer.integers("f", {n, -1})});
  writer.node_to("y", "Gemm", "fc", {flat, writer.weight("fc.weight", {144, 10})});
  writer.output("y");
  return writer;
}

TEST(OnnxSamples, ConstantsOfReshapesMayHoldTheBatch) {
  const Graph symbolic = with_samples(shuffle_network(0), 6);
  EXPECT_EQ(symbolic.batch(), 6U);
  expect_same_networks(with_samples(shuffle_network(1), 6), symbolic);
  expect_same_networks(with_samples(shuffle_network(3), 6), symbolic);
  expect_same_networks(with_samples(shuffle_network(6), 6), symbolic);
}

TEST(OnnxSamples, PositionsMayBeInFront) {
  ModelWriter writer;
  writer.input("x", 1, {1, 6, 16});
  const std::string turned = writer.node("Transpose", "turned", {"x"}, {attrs("perm", {1, 0, 2})});
  const std::string product = writer.node("MatMul", "in", {turned, writer.weight("w", {16, 48})});
  const std::vector<std::string> parts = writer.nodes("Split", "parts", {product}, 3, {attr("axis", -1)});
  std::vector<std::string> heads;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = "heads" + std::to_string(i);
    const std::string apart = writer.node("Reshape", name, {parts[i], writer.integers("heads", {6, 2, 8})});
    heads.push_back(writer.node("Transpose", name + "_turned", {apart}, {attrs("perm", {1, 0, 2})}));
  }
  const std::string key = writer.node("Transpose", "key", {heads[1]}, {attrs("perm", {0, 2, 1})});
  const std::string soft =
      writer.node("Softmax", "softmax", {writer.node("MatMul", "scores", {heads[0], key})}, {attr("axis", -1)});
  const std::string context = writer.node("MatMul", "context", {soft, heads[2]});
  const std::string back = writer.node("Transpose", "back", {context}, {attrs("perm", {1, 0, 2})});
  const std::string flat = writer.node("Reshape", "flat", {back, writer.integers("flat", {6, 1, 16})});
  writer.node_to("y", "MatMul", "out", {flat, writer.weight("out.weight", {16, 4})});
  writer.output("y");
  const Graph graph = with_samples(writer, 5);
  const Operator& attention = last_of_kind(graph, OperatorKind::attention);
  EXPECT_EQ(attention.heads, 2U);
  EXPECT_EQ(attention.sequence, 6U);
  EXPECT_EQ(attention.shape(), (Shape{30, 16}));
}

TEST(OnnxSamples, WhatHasNoSamplesIsDoneForEach) {
  ModelWriter writer;
  writer.input("x", 1, {1, 12, 8});
  const std::string hidden = writer.node("MatMul", "fc", {"x", writer.weight("fc.weight", {8, 10})});
  const std::string one = writer.node("Gather", "one", {hidden, writer.integers("zero", {0}, true)});
  writer.node_to("y", "MatMul", "head", {one, writer.weight("head.weight", {10, 4})});
  writer.output("y");
  const Graph graph = with_samples(writer, 3);
  EXPECT_EQ(last_of_kind(graph, OperatorKind::linear).shape(), (Shape{36, 4}));
}

TEST(OnnxSamples, PartsOfSamplesAreRefused) {
  ModelWriter writer;
  writer.input("x", 1, {4, 8});
  const std::string hidden = writer.node("Gemm", "fc", {"x", writer.weight("fc.weight", {8, 8})});
  const std::string first =
      writer.node("Slice", "first", {hidden, writer.integers("from", {0}), writer.integers("to", {3})});
  writer.node_to("y", "Gemm", "head", {first, writer.weight("head.weight", {8, 4})});
  writer.output("y");
  try {
    static_cast<void>(with_samples(writer, 8));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("has the fixed batch of 4"));
    EXPECT_THAT(error.what(), testing::HasSubstr("give --batch 4"));
  }
}

}  // namespace
}  // namespace hcclsim::models::onnx
