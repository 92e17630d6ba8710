#include "hccl/parallel/sharding/region.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hccl/parallel/sharding/shard_graph.hpp"
#include "models/graph_builder.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::GraphBuilder;
using models::OperatorKind;
using testing::ElementsAre;
using testing::HasSubstr;

/// fc1, relu, fc2 of 8 samples between two other products.
Graph chain() {
  GraphBuilder net("chain", models::Shape{8, 16});
  auto x = net.linear("before", GraphBuilder::input(), 16, true);
  x = net.relu("relu", net.linear("fc1", x, 32, true));
  x = net.linear("fc2", x, 16, true);
  const auto last = net.linear("behind", x, 8, true);
  return std::move(net).finish(last);
}

std::set<models::OperatorId> named(const Graph& graph, const std::vector<std::string>& names) {
  std::set<models::OperatorId> ids;
  for (models::OperatorId id = 0; id < graph.operators.size(); ++id) {
    if (std::ranges::find(names, graph.operators[id].name) != names.end()) ids.insert(id);
  }
  return ids;
}

ShardRegion middle(const Graph& graph) {
  return {.operators = named(graph, {"fc1", "relu", "fc2"}), .inputs = {Cuts{2, 1}}, .parameters = {}};
}

TEST(ShardRegions, MorePartsThanDevicesAreRefused) {
  const Graph graph = chain();
  ShardRegion region = middle(graph);
  region.inputs = {Cuts{8, 2}};
  EXPECT_THAT(test::refusal("value-error", [&] { (void)region_strategies(graph, region, 8); }),
              HasSubstr("cut as (8,2) has 16 parts for 8 devices"));
}

// The first product is cut by what it makes, and the second one by what it reads, which follows: Megatron's pair.
TEST(ShardRegions, CutsSpreadFromInputsAndPlannedParameters) {
  const Graph graph = chain();
  ShardRegion region = middle(graph);
  region.parameters = {{"fc1.weight", {4, 1}}};
  const StrategyMap strategies = region_strategies(graph, region, 8);
  ASSERT_EQ(strategies.size(), 3U);
  EXPECT_THAT(strategies.at("fc1").inputs, ElementsAre(ElementsAre(2, 1), ElementsAre(4, 1), ElementsAre(4)));
  EXPECT_THAT(strategies.at("relu").inputs, ElementsAre(ElementsAre(2, 4)));
  EXPECT_THAT(strategies.at("fc2").inputs, ElementsAre(ElementsAre(2, 4), ElementsAre(1, 4), ElementsAre(1)));
  const ShardedGraph sharded = shard_graph(graph, strategies, 8, {.dataset = Cuts{1, 1}});
  EXPECT_EQ(std::ranges::count(sharded.graph.operators, OperatorKind::all_reduce, &models::Operator::kind), 1);
  // Outside of the region every device has samples of its own; parameters there are summed over all devices.
  EXPECT_EQ(sharded.copies(0), 8U);
  EXPECT_EQ(sharded.copies(2), 2U);
}

TEST(ShardRegions, InputsWithoutAStrategyAreDataParallel) {
  const Graph graph = chain();
  ShardRegion region = middle(graph);
  region.inputs = {std::nullopt};
  const StrategyMap strategies = region_strategies(graph, region, 8);
  EXPECT_THAT(strategies.at("fc1").inputs, ElementsAre(ElementsAre(8, 1), ElementsAre(1, 1), ElementsAre(1)));
}

// What does not fit beside a planned parameter stays whole: 8 parts of samples and 4 of features are more than 8.
TEST(ShardRegions, PlannedParametersComeFirst) {
  const Graph graph = chain();
  ShardRegion region = middle(graph);
  region.inputs = {Cuts{8, 1}};
  region.parameters = {{"fc1.weight", {4, 1}}};
  EXPECT_THAT(region_strategies(graph, region, 8).at("fc1").inputs,
              ElementsAre(ElementsAre(1, 1), ElementsAre(4, 1), ElementsAre(4)));
}

TEST(ShardRegions, InputsComeInTheOrderInWhichTheyAreRead) {
  GraphBuilder net("sum", models::Shape{8, 16});
  const auto one = net.linear("one", GraphBuilder::input(), 16, false);
  const auto two = net.linear("two", GraphBuilder::input(), 16, false);
  const auto last = net.add("sum", two, one);
  const Graph graph = std::move(net).finish(last);
  const std::vector<models::Value> inputs = inputs_of_region(graph, named(graph, {"sum"}));
  EXPECT_THAT(inputs, ElementsAre(models::Value(two), models::Value(one)));
}

TEST(ShardRegions, WhatDoesNotFitIsAValueError) {
  const Graph graph = chain();
  const auto refusal = [&](const ShardRegion& region) {
    return test::refusal("value-error", [&] { (void)region_strategies(graph, region, 8); });
  };
  ShardRegion region = middle(graph);
  region.inputs = {};
  EXPECT_THAT(refusal(region), HasSubstr("in_strategy has 0 elements, the region reads 1: before"));
  region.inputs = {Cuts{3, 1}};
  EXPECT_THAT(refusal(region), HasSubstr("in_strategy: before of shape 8x16 cannot be cut as (3,1)"));
  region.inputs = {Cuts{2}};
  EXPECT_THAT(refusal(region), HasSubstr("cannot be cut as (2)"));
  region = middle(graph);
  region.parameters = {{"fc1.weight", {4}}};
  EXPECT_THAT(refusal(region), HasSubstr("parameter_plan: fc1.weight of shape (32,16) cannot be cut as (4)"));
  region.parameters = {{"fc1.weight", {3, 1}}};
  EXPECT_THAT(refusal(region), HasSubstr("cannot be cut as (3,1); there is a divisor for each axis"));
  region.parameters = {{"fc1.weight", {16, 1}}};
  EXPECT_THAT(refusal(region), HasSubstr("fc1.weight cannot be cut as (16,1) by fc1 over 8 devices"));
}

}  // namespace
}  // namespace hcclsim::hccl
