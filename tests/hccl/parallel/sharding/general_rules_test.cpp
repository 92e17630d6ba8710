#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "models/graph_builder.hpp"
#include "tests/support/refusal.hpp"

/// Operators that say what they cost and not what they compute, and reshapes: cut by samples.
namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::GraphBuilder;
using models::Operator;
using models::Shape;
using testing::HasSubstr;

/// 8 samples of 16 features as 32 rows of 4, work of vectors and products on these, and a linear operator.
Graph general_chain() {
  GraphBuilder net("general", Shape{8, 16});
  const auto rows = net.reshape("rows", GraphBuilder::input(), {32, 4}, 0);
  const auto gate = net.vector_work("gate", {rows}, {32, 4}, {.forward = 1280, .backward = 640, .duration = 1e-3});
  const auto scores = net.matrix_product("scores", {gate, rows}, {32, 4}, {.m = 4, .n = 4, .k = 4, .groups = 8});
  const auto flat = net.reshape("flat", scores, {8, 16}, 0);
  const auto last = net.linear("fc", flat, 16, false);
  return std::move(net).finish(last);
}

const Operator& operator_called(const Graph& graph, std::string_view name) {
  return *std::ranges::find(graph.operators, name, &Operator::name);
}

TEST(GeneralRules, WorkIsSharedBySamples) {
  const ShardedGraph sharded = shard_graph(general_chain(), {{"fc", {.inputs = {{4, 1}, {1, 1}}}}}, 4);
  EXPECT_EQ(operator_called(sharded.graph, "rows").shape(), (Shape{8, 4}));
  EXPECT_EQ(operator_called(sharded.graph, "gate").shape(), (Shape{8, 4}));
  EXPECT_EQ(operator_called(sharded.graph, "gate").work.forward, 320U);
  EXPECT_EQ(operator_called(sharded.graph, "gate").work.backward, 160U);
  EXPECT_DOUBLE_EQ(*operator_called(sharded.graph, "gate").work.duration, 0.25e-3);
  EXPECT_EQ(operator_called(sharded.graph, "scores").product.groups, 2U);
  EXPECT_EQ(operator_called(sharded.graph, "flat").shape(), (Shape{2, 16}));
  EXPECT_TRUE(std::ranges::none_of(sharded.graph.operators, [](const Operator& op) { return communicates(op.kind); }));
}

// Products cut by what they make, one behind the other: rows become those of sequences with their features cut.
TEST(GeneralRules, ReshapesOfRowsKeepTheCutsOfFeatures) {
  GraphBuilder net("rows", Shape{8, 16});
  const auto made = net.linear("fc1", GraphBuilder::input(), 32, false);
  const auto rows = net.reshape("rows", made, {8, 32}, 4);
  const auto last = net.linear("fc2", rows, 16, false);
  const Graph graph = std::move(net).finish(last);
  const StrategyMap strategies{
      {"fc1", {.inputs = {{1, 1}, {4, 1}}}}, {"rows", {.inputs = {{1, 4}}}}, {"fc2", {.inputs = {{1, 4}, {1, 4}}}}};
  const ShardedGraph sharded = shard_graph(graph, strategies, 4, {.dataset = Cuts{1, 1}});
  EXPECT_EQ(operator_called(sharded.graph, "rows").shape(), (Shape{8, 8}));
  EXPECT_EQ(std::ranges::count_if(sharded.graph.operators, [](const Operator& op) { return communicates(op.kind); }),
            1);                                                                  // the sum behind fc2
  EXPECT_EQ(shard_operator(WholeGraph(graph), 2, nullptr, 4).cut("batch"), 2U);  // of 2 sequences
}

// 8 samples are not cut into 16 parts, though there are 32 rows.
TEST(GeneralRules, CutsDivideTheFirstAxisOfAllTensors) {
  const Graph graph = general_chain();
  const WholeGraph whole(graph);
  EXPECT_EQ(shard_operator(whole, 1, nullptr, 16).cut("batch"), 8U);
  EXPECT_EQ(shard_operator(whole, 2, nullptr, 16).cut("batch"), 16U);
  const OperatorStrategy strategy{.inputs = {{16, 1}}};
  EXPECT_THAT(test::refusal("strategy", [&] { (void)shard_operator(whole, 1, &strategy, 16); }), HasSubstr("batch"));
}

TEST(GeneralRules, ProductsOfOneGroupAreSharedByTheirRows) {
  GraphBuilder net("product", Shape{8, 16});
  const auto twice = net.matrix_product("twice", {GraphBuilder::input()}, {8, 4}, {.m = 8, .n = 4, .k = 16});
  const ShardedGraph sharded = shard_graph(std::move(net).finish(twice), {{"twice", {.inputs = {{4, 1}}}}}, 4);
  EXPECT_EQ(operator_called(sharded.graph, "twice").product.m, 2U);
  EXPECT_EQ(operator_called(sharded.graph, "twice").product.n, 4U);
}

TEST(GeneralRules, OtherAxesStayWhole) {
  EXPECT_THAT(test::refusal("strategy",
                            [&] {
                              (void)shard_graph(general_chain(), {{"gate", {.inputs = {{1, 4}}}}}, 4);
                            }),
              HasSubstr("what the operator does along other axes than the first is open"));
}

/// Rows of a batch have no sample on an axis that all of them share.
TEST(GeneralRules, TensorsOfOneRowAreRead) {
  GraphBuilder net("shared", Shape{8, 16});
  const auto one = net.reshape("one", net.linear("fc", GraphBuilder::input(), 1, false), {1, 8}, 0);
  const auto all = net.vector_work("all", {GraphBuilder::input(), one}, {8, 16}, {.forward = 8});
  const Graph graph = std::move(net).finish(all);
  EXPECT_EQ(shard_operator(WholeGraph(graph), 3, nullptr, 4).cut("batch"), 4U);
  EXPECT_EQ(shard_operator(WholeGraph(graph), 3, nullptr, 4).inputs.back().copies(), 4U);
}

}  // namespace
}  // namespace hcclsim::hccl
