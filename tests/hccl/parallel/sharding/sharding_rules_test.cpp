#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "models/graph_builder.hpp"
#include "models/inference.hpp"
#include "tests/support/refusal.hpp"

/// The general rules of MindSpore's operators, each with what it refuses.
namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::GraphBuilder;
using models::OperatorKind;
using testing::HasSubstr;

/// fc1 of 8 samples of 16 features to 32, fc2 back to 16 with the same weight if `shared`.
Graph two_products() {
  GraphBuilder net("two products", models::Shape{8, 16});
  const auto x = net.linear("fc1", GraphBuilder::input(), 32, false);
  const auto last = net.linear("fc2", x, 16, false);
  return std::move(net).finish(last);
}

std::string refusal(const OperatorStrategy& strategy, Rank devices) {
  const Graph graph = two_products();
  return test::refusal("strategy", [&] { (void)shard_graph(graph, {{"fc1", strategy}}, devices); });
}

TEST(ShardingRules, OneStrategyForEachTensorThatFitsItsAxes) {
  EXPECT_THAT(refusal({.inputs = {{2, 1}}}, 8), HasSubstr("numbers of parts for each tensor, got them for 1 of 2"));
  EXPECT_THAT(refusal({.inputs = {{2, 1, 1}, {1, 1}}}, 8), HasSubstr("numbers of parts for 3 axes, it has 2"));
  EXPECT_THAT(refusal({.inputs = {{0, 1}, {1, 1}}}, 8), HasSubstr("a cut into 0 parts; each must be 1 or more"));
  EXPECT_THAT(refusal({.inputs = {{16, 1}, {1, 1}}}, 16), HasSubstr("batch of 8 cannot be cut into 16 equal parts"));
  EXPECT_THAT(refusal({.inputs = {{6, 1}, {1, 1}}}, 8), HasSubstr("over 8 devices each must be a power of two"));
  EXPECT_THAT(refusal({.inputs = {{3, 1}, {1, 1}}}, 6), HasSubstr("batch of 8 cannot be cut into 3 equal parts"));
}

TEST(ShardingRules, PartsDivideTheDevicesAndTheRestRepeatsOnTheRight) {
  EXPECT_THAT(refusal({.inputs = {{8, 2}, {1, 2}}}, 8), HasSubstr("16 parts (batch 8, inputs 2) for 8 devices"));
  const Graph graph = two_products();
  const OperatorStrategy strategy{.inputs = {{2, 1}, {2, 1}}};
  const OperatorSharding sharding = shard_operator(WholeGraph(graph), 1, &strategy, 8);
  EXPECT_EQ(sharding.matrix.sizes.back(), 2U);
  EXPECT_EQ(sharding.outputs.front().replicas().front(), (std::vector<Rank>{0, 1}));  // neighbours compute the same
}

TEST(ShardingRules, ParametersAreMirroredOverTheirCopies) {
  const ShardedGraph sharded = shard_graph(two_products(), {{"fc1", {.inputs = {{2, 1}, {2, 1}}}}}, 8);
  EXPECT_EQ(sharded.families.at(sharded.mirrors[0]), (DeviceGroups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  const ShardedGraph whole = shard_graph(two_products(), {{"fc1", {.inputs = {{1, 1}, {8, 1}}}}}, 8);
  EXPECT_EQ(whole.mirrors[0], ShardedGraph::no_family);  // only if there are several
}

TEST(ShardingRules, OutStrategyWhereItIsNotTaken) {
  GraphBuilder net("relu", models::Shape{8, 16});
  const auto x = net.relu("relu", net.linear("fc1", GraphBuilder::input(), 16, false));
  const auto last = net.linear("fc2", x, 16, false);
  const Graph graph = std::move(net).finish(last);
  EXPECT_THAT(test::refusal("strategy",
                            [&] {
                              (void)shard_graph(graph, {{"relu", {.inputs = {{2, 1}}, .output = Cuts{4, 1}}}}, 8);
                            }),
              HasSubstr("do not take a strategy of the output"));
}

TEST(ShardingRules, WithoutAStrategySamplesAreCutByTheirCommonDivisor) {
  const Graph graph = two_products();
  const OperatorSharding sharding = shard_operator(WholeGraph(graph), 1, nullptr, 12);
  EXPECT_EQ(sharding.cut("batch"), 4U);
  EXPECT_EQ(sharding.parameters.front().copies(), 12U);
}

TEST(ShardingRules, AParameterOfSeveralOperatorsIsCutAlike) {
  GraphBuilder builder = GraphBuilder::of_tokens("tied", 4, 8);
  const auto x = builder.token_embedding("table", GraphBuilder::input(), 64, 8);
  const auto last = builder.tied_linear("head", x, 1, false);
  const Graph tied = std::move(builder).finish(last);
  EXPECT_THAT(test::refusal("strategy",
                            [&] {
                              (void)shard_graph(tied, {{"table", {.inputs = {{4, 1}, {1, 1}}}}}, 4);
                            }),
              HasSubstr("all must cut it alike"));
  EXPECT_NO_THROW(
      (void)shard_graph(tied, {{"table", {.inputs = {{4, 1}, {1, 1}}}}, {"head", {.inputs = {{1, 1}, {4, 1}}}}}, 4));
}

// What a network gives is laid out as its batch is read: whole, or a part of the samples; other cuts leave it.
TEST(ShardingRules, ResultsAreGatheredToTheLayoutOfTheBatch) {
  const Graph network = models::inference_graph(two_products());
  const StrategyMap strategies{{"fc2", {.inputs = {{1, 1}, {4, 1}}}}};
  const auto result = [&](std::optional<Cuts> dataset) {
    const ShardedGraph sharded = shard_graph(network, strategies, 4, {.dataset = std::move(dataset)});
    return sharded.graph.operators.back();
  };
  EXPECT_EQ(result(Cuts{1, 1}).shape(), (models::Shape{8, 16}));
  EXPECT_EQ(result(Cuts{1, 1}).kind, OperatorKind::all_gather);
  EXPECT_EQ(result(Cuts{4, 1}).shape(), (models::Shape{2, 16}));
  EXPECT_EQ(result(Cuts{2, 1}).shape(), (models::Shape{8, 4}));  // a tuple: not adapted
  EXPECT_EQ(result(std::nullopt).shape(), (models::Shape{8, 4}));
}

// Two devices with the same rows compute the same loss: half of it counts for each; without loss_repeated_mean all.
TEST(ShardingRules, RepeatedLosses) {
  const StrategyMap whole{{"loss", {.inputs = {{1, 1}, {1}}}}};
  const auto factor = [&](bool repeated_mean) {
    const ShardedGraph sharded = shard_graph(two_products(), whole, 2, {.loss_repeated_mean = repeated_mean});
    return sharded.graph.operators.back().loss_parts.front().gradient_factor;
  };
  EXPECT_EQ(factor(true), 0.5);
  EXPECT_EQ(factor(false), 1);
}

}  // namespace
}  // namespace hcclsim::hccl
