#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "models/onnx/import.hpp"
#include "tests/models/onnx/wire.hpp"

// Networks that go through sequences step by step.
namespace hcclsim::models::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int real_numbers = 1;
constexpr int token_numbers = 7;

Graph read_graph(const ModelWriter& writer, const ImportOptions& options = {.batch = 2}) {
  return import_graph(writer.save(testing::TempDir() + "recurrent.onnx"), options);
}

/// Steps × samples × 8 features, a layer of 4 numbers of state, and 3 features of what it makes of them.
ModelWriter one_layer(const std::string& type, std::int64_t gates, std::int64_t directions,
                      const std::vector<Dim>& input = {5, "N", 8}) {
  ModelWriter writer(14);
  writer.input("x", real_numbers, input);
  const std::int64_t rows = gates * 4;
  const std::string way = directions == 2 ? "bidirectional" : "forward";
  const std::vector<std::string> made =
      writer.nodes(type, "rnn",
                   {"x", writer.weight("rnn.W", {directions, rows, 8}), writer.weight("rnn.R", {directions, rows, 4}),
                    writer.weight("rnn.B", {directions, 2 * rows})},
                   2, {attr("hidden_size", 4), {.name = "direction", .text = way}});
  const std::string flat = writer.node("Reshape", "flat", {made[0], writer.integers("shape", {-1, directions * 4})});
  writer.output(writer.node("MatMul", "head", {flat, writer.weight("head.weight", {directions * 4, 3})}));
  return writer;
}

TEST(OnnxRecurrent, ProductsOfTheInputAndOfTheState) {
  const Graph graph = read_graph(one_layer("LSTM", 4, 1));
  ASSERT_EQ(graph.operators.size(), 6U);
  EXPECT_EQ(graph.operators[0].shape().batch(), 2U);
  const Operator& of_input = graph.operators[1];
  EXPECT_EQ(of_input.kind, OperatorKind::product);
  EXPECT_EQ(forward_flops(graph, of_input), 2U * (5 * 2) * 16 * 8);
  // The batch needs no gradient.
  EXPECT_EQ(backward_flops(graph, of_input, false), 2U * (5 * 2) * 16 * 8);
  const Operator& of_state = graph.operators[2];
  EXPECT_EQ(of_state.product.m, 2U);
  EXPECT_EQ(of_state.product.groups, 5U);
  EXPECT_EQ(forward_flops(graph, of_state), 2U * 5 * 2 * 16 * 4);
  EXPECT_EQ(backward_flops(graph, of_state, true), 4U * 5 * 2 * 16 * 4);
  // Of each of 40 numbers: 12 sums, three sigmoids of four, two tangents, four products and sums.
  EXPECT_EQ(forward_flops(graph, graph.operators[3]), 40U * (12 + 12 + 2 + 4));
  std::vector<std::uint64_t> sizes;
  for (const Parameter& parameter : graph.parameters) sizes.push_back(parameter.elements);
  EXPECT_THAT(sizes, ElementsAre(128, 64, 32, 12));
}

TEST(OnnxRecurrent, BothDirectionsHaveAStateOfTheirOwn) {
  for (const auto& [type, gates] : {std::pair("LSTM", 4U), std::pair("GRU", 3U), std::pair("RNN", 1U)}) {
    const Graph graph = read_graph(one_layer(type, gates, 2));
    EXPECT_EQ(forward_flops(graph, graph.operators[1]), 2U * (5 * 2) * (2 * gates * 4) * 8) << type;
    EXPECT_EQ(graph.operators[2].product.groups, 2U * 5) << type;
    EXPECT_EQ(forward_flops(graph, graph.operators[2]), 2U * 5 * 2 * 2 * (gates * 4) * 4) << type;
  }
}

TEST(OnnxRecurrent, SamplesAreTheSecondAxisWhereStepsAreTheFirst) {
  const auto message = [](const ModelWriter& writer, std::uint32_t batch) {
    try {
      static_cast<void>(read_graph(writer, {.batch = batch}));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message(one_layer("GRU", 3, 1, {5, 2, 8}), 2), "accepted");
  const Graph fixed = read_graph(one_layer("GRU", 3, 1, {5, 2, 8}), {.batch = 4});
  const Graph symbolic = read_graph(one_layer("GRU", 3, 1, {5, "N", 8}), {.batch = 4});
  ASSERT_EQ(fixed.operators.size(), symbolic.operators.size());
  for (std::size_t i = 0; i < fixed.operators.size(); ++i) {
    EXPECT_EQ(fixed.operators[i].shape(), symbolic.operators[i].shape()) << fixed.operators[i].name;
    EXPECT_EQ(fixed.operators[i].product.m, symbolic.operators[i].product.m) << fixed.operators[i].name;
    EXPECT_EQ(fixed.operators[i].work.forward, symbolic.operators[i].work.forward) << fixed.operators[i].name;
  }
  EXPECT_THAT(message(one_layer("GRU", 3, 1, {"steps", "N", 8}), 2), HasSubstr("how large steps is"));
}

TEST(OnnxRecurrent, SamplesAreTheFirstAxisBehindATransposition) {
  // A language model whose tokens have the samples in front, as batch_first=True is exported.
  ModelWriter writer(14);
  writer.input("tokens", token_numbers, {"N", 5});
  const std::string rows = writer.node("Gather", "table", {writer.weight("table.weight", {50, 8}), "tokens"});
  const std::string turned = writer.node("Transpose", "turned", {rows}, {attrs("perm", {1, 0, 2})});
  // The weights of the gates, as the exporter puts them into ONNX's order.
  const auto part = [&](const std::string& of, std::int64_t from, std::int64_t to) {
    return writer.node("Slice", of + std::to_string(from),
                       {of, writer.integers("at" + std::to_string(from), {from}),
                        writer.integers("at" + std::to_string(to), {to}), writer.integers("at0", {0})});
  };
  const auto in_order = [&](const std::string& name, const std::vector<std::int64_t>& dims) {
    writer.weight(name, dims);
    const std::string joined =
        writer.node("Concat", name + "_joined", {part(name, 0, 8), part(name, 8, 16)}, {attr("axis", 0)});
    return writer.node("Unsqueeze", name + "_lifted", {joined, writer.integers("at0", {0})});
  };
  const std::vector<std::string> made = writer.nodes(
      "LSTM", "rnn", {turned, in_order("rnn.ih", {16, 8}), in_order("rnn.hh", {16, 4})}, 3, {attr("hidden_size", 4)});
  const std::string last = writer.node("Squeeze", "last", {made[1], writer.integers("at0", {0})});
  writer.output(writer.node("MatMul", "head", {last, writer.weight("head.weight", {4, 3})}));
  const Graph graph = read_graph(writer);
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  EXPECT_THAT(names, ElementsAre("table.weight", "rnn.ih", "rnn.hh", "head.weight"));
  EXPECT_EQ(graph.operators[0].shape().batch(), 2U);
}

TEST(OnnxRecurrent, BiasesOfOneNumberAreTrained) {
  ModelWriter writer;
  writer.input("x", real_numbers, {"N", 8});
  writer.output(
      writer.node("Gemm", "head", {"x", writer.weight("head.weight", {8, 1}), writer.weight("head.bias", {1})}));
  const Graph graph = read_graph(writer);
  ASSERT_EQ(graph.parameters.size(), 2U);
  EXPECT_EQ(graph.parameters[1].elements, 1U);
}

}  // namespace
}  // namespace hcclsim::models::onnx
