#include "hccl/parallel/sharding/shard_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/hccl/parallel/sharding/device_numbers.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/training/random_strategies.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorId;
using models::OperatorKind;
using models::Phase;
using numbers::Numbers;
using test::images_network;
using test::random_strategies;
using test::tokens_network;
using testing::HasSubstr;

std::mt19937 numbers_from(std::uint32_t seed) { return std::mt19937(seed); }

Numbers random_numbers(const models::Shape& shape, std::mt19937& random) {
  std::uniform_real_distribution<double> any(-1, 1);
  Numbers numbers{shape, std::vector<double>(shape.elements())};
  for (double& value : numbers.values) value = any(random);
  return numbers;
}

/// What a layout's shape is of a value of the whole network, which has the same numbers.
Numbers seen_as(Numbers numbers, const models::Shape& shape) {
  numbers.shape = shape;
  return numbers;
}

/// Computes a network whole and cut over devices: every value of which the devices have parts must be those parts, and
/// what they leave to be added up must add up.
void expect_same_numbers(const Graph& whole, const StrategyMap& strategies, Rank devices, const ShardOptions& options,
                         const std::string& what) {
  std::mt19937 random = numbers_from(7);
  Numbers batch = random_numbers(whole.operators.front().shape(), random);
  if (whole.input_kind == models::InputKind::tokens) {
    for (double& value : batch.values) value = std::floor((value + 1) / 2 * 15.99);
  }
  std::vector<Numbers> parameters;
  for (const models::Parameter& parameter : whole.parameters) {
    parameters.push_back(random_numbers(models::Shape(parameter.shape), random));
  }
  const ShardedGraph one = shard_graph(whole, {}, 1);
  const std::vector<Numbers> expected = numbers::compute(one, batch, parameters).front();
  const ShardedGraph sharded = shard_graph(whole, strategies, devices, options);
  const auto found = numbers::compute(sharded, batch, parameters);
  const std::vector<std::uint32_t> first = sharded.graph.first_values();
  std::map<std::string, OperatorId> by_name;
  for (OperatorId id = 0; id < whole.operators.size(); ++id) by_name[whole.operators[id].name] = id;
  std::size_t compared = 0;
  for (OperatorId id = 0; id < sharded.graph.operators.size(); ++id) {
    const Operator& op = sharded.graph.operators[id];
    const auto original = by_name.find(op.name.substr(0, op.name.find(".all_reduce")));
    const bool is_whole = op.original != models::no_original && op.kind != OperatorKind::loss;
    const bool is_sum = op.kind == OperatorKind::all_reduce && original != by_name.end();
    // What leaves its bias to others, or a sum, is compared behind them.
    const bool unfinished = id + 1 < sharded.graph.operators.size() && is_whole &&
                            sharded.graph.operators[id + 1].name.starts_with(op.name + ".") &&
                            op.kind != OperatorKind::bias;
    if (!is_whole || unfinished || is_sum) continue;
    const TensorLayout& layout = sharded.values[first[id]].value();
    const Numbers all = seen_as(expected[op.original], layout.shape);
    for (Rank device = 0; device < devices; ++device) {
      const Numbers part = numbers::part_of(all, layout.offsets(device), layout.slice_shape());
      const std::vector<double>& own = found[device][first[id]].values;
      ASSERT_EQ(own.size(), part.values.size()) << what << ": " << op.name;
      for (std::size_t i = 0; i < own.size(); ++i) {
        ASSERT_NEAR(own[i], part.values[i], 1e-8 * std::max(1.0, std::abs(part.values[i])))
            << what << ": " << op.name << ", device " << device << ", element " << i << " in " << to_string(layout);
      }
    }
    ++compared;
  }
  EXPECT_GE(compared, 2U) << what;
}

// Any strategies give the numbers of the whole network.
TEST(ShardGraph, RandomStrategiesComputeTheSame) {
  std::mt19937 random = numbers_from(1);
  std::size_t computed = 0;
  for (int round = 0; round < 60; ++round) {
    const Graph graph = round % 2 == 0 ? tokens_network() : images_network();
    const Rank devices = 1U << random() % 4;
    const StrategyMap strategies = random_strategies(graph, devices, random);
    const ShardOptions options{.enable_alltoall = random() % 2 == 0};
    std::string what = "round " + std::to_string(round) + ":";
    for (const auto& [name, strategy] : strategies) what += " " + name + " " + to_string(strategy);
    try {
      (void)shard_graph(graph, strategies, devices, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "strategy") << what;  // a tied table, or borders of images
      continue;
    }
    ++computed;
    expect_same_numbers(graph, strategies, devices, options, what);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(computed, 30U);
}

TEST(ShardGraph, PresetsComputeTheSame) {
  const Graph graph = tokens_network();
  for (const bool vocabulary : {false, true}) {
    for (const bool sequence : {false, true}) {
      for (const ContextKind kind : {ContextKind::ulysses, ContextKind::ring}) {
        const TransformerSharding sharding{.data = 2,
                                           .context = 2,
                                           .model = 2,
                                           .sequence_parallel = sequence,
                                           .vocabulary_parallel = vocabulary,
                                           .context_kind = kind};
        expect_same_numbers(graph, transformer_strategies(graph, sharding), 8, {.enable_alltoall = true}, "preset");
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The backward pass has the dual of every collective of the forward pass, in the opposite order, with as many bytes.
TEST(ShardGraph, BackwardCollectivesAreDuals) {
  std::mt19937 random = numbers_from(2);
  for (int round = 0; round < 20; ++round) {
    const Graph graph = round % 2 == 0 ? tokens_network() : images_network();
    const Rank devices = 1U << random() % 4;
    ShardedGraph sharded;
    try {
      sharded = shard_graph(graph, random_strategies(graph, devices, random), devices, {.enable_alltoall = true});
    } catch (const Error&) {
      continue;
    }
    const std::vector<bool> needs = sharded.graph.needs_gradient();
    std::map<OperatorId, models::CommunicationWork> forward;
    std::map<OperatorId, models::CommunicationWork> backward;
    const models::Program program = models::lower(sharded.graph, {});
    for (const models::Kernel& kernel : program.micro_batch()) {
      if (kernel.kind != models::KernelClass::communication) continue;
      if (!models::communicates(sharded.graph.operators[kernel.op].kind)) continue;
      (kernel.phase == Phase::forward ? forward : backward)[kernel.op] = *kernel.communication;
    }
    for (const auto& [id, work] : forward) {
      const Operator& op = sharded.graph.operators[id];
      EXPECT_EQ(backward.contains(id), needs[op.inputs.front().op]) << op.name;
      if (!backward.contains(id)) continue;
      const models::CommunicationWork& back = backward.at(id);
      EXPECT_EQ(back.group.family, work.group.family);
      EXPECT_EQ(back.elements, op.shape().elements()) << op.name;
      EXPECT_EQ(work.elements, sharded.graph.input_of(op).elements()) << op.name;
      const std::map<OperatorKind, OperatorKind> duals{{OperatorKind::all_gather, OperatorKind::reduce_scatter},
                                                       {OperatorKind::reduce_scatter, OperatorKind::all_gather}};
      EXPECT_EQ(back.kind, duals.contains(work.kind) ? duals.at(work.kind) : work.kind);
      for (const int row : {-1, 0, 1}) {
        for (const int column : {-1, 0, 1}) {
          EXPECT_EQ(back.neighbours.to(row, column), work.neighbours.to(-row, -column)) << op.name;
        }
      }
    }
  }
}

// What every device computes on samples of its own has no communication but the sums of gradients.
TEST(ShardGraph, WithoutStrategiesAllIsBatchParallel) {
  for (const std::string name :
       {"resnet50", "mobilenetv2", "lenet", "vgg16", "vit-b16", "tinygpt", "widedeep", "deepfm"}) {
    const Graph graph = models::make_model({.name = name, .batch = 8});
    const ShardedGraph sharded = shard_graph(graph, {}, 4);
    for (const Operator& op : sharded.graph.operators) EXPECT_FALSE(models::communicates(op.kind)) << op.name;
    for (std::size_t i = 0; i < sharded.mirrors.size(); ++i) {
      EXPECT_EQ(sharded.graph.parameters[i].elements, graph.parameters[i].elements);
      EXPECT_EQ(sharded.families.at(sharded.mirrors[i]), (DeviceGroups{{0, 1, 2, 3}}));
    }
    EXPECT_EQ(sharded.graph.operators.size(), graph.operators.size());
    EXPECT_EQ(sharded.graph.operators.back().loss_parts.front().gradient_factor, 0.25);
    EXPECT_EQ(sharded.graph.batch(), 2U);
  }
}

// Batch norm over the samples of all devices: two sums per channel go round in either pass.
TEST(ShardGraph, BatchNormOverTheBatch) {
  const ShardedGraph sharded = shard_graph(images_network(), {}, 4);
  const auto norm = std::ranges::find(sharded.graph.operators, OperatorKind::batch_norm, &Operator::kind);
  EXPECT_EQ(sharded.families.at(norm->group.family), (DeviceGroups{{0, 1, 2, 3}}));
  const models::Program program = models::lower(sharded.graph, {});
  std::vector<std::pair<Phase, std::uint64_t>> sums;
  for (const models::Kernel& kernel : program.micro_batch()) {
    if (kernel.kind != models::KernelClass::communication) continue;
    EXPECT_EQ(kernel.communication->dtype, DataType::fp32);
    sums.emplace_back(kernel.phase, kernel.communication->elements);
  }
  EXPECT_EQ(sums, (std::vector<std::pair<Phase, std::uint64_t>>{{Phase::forward, 16}, {Phase::backward, 16}}));
}

TEST(ShardGraph, BatchNormOverGroupsOfTheBatch) {
  const OperatorStrategy batch{.inputs = {{4, 1, 1, 1}, {1}, {1}}};
  const auto with = [&](std::uint32_t group_size) {
    OperatorStrategy strategy = batch;
    strategy.group_size = group_size;
    const ShardedGraph sharded = shard_graph(images_network(), {{"bn1", strategy}}, 8);
    const auto norm = std::ranges::find(sharded.graph.operators, OperatorKind::batch_norm, &Operator::kind);
    return norm->group.ranks == 1 ? DeviceGroups{} : sharded.families.at(norm->group.family);
  };
  EXPECT_EQ(with(0), (DeviceGroups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(with(2), (DeviceGroups{{0, 2}, {4, 6}, {1, 3}, {5, 7}}));
  EXPECT_EQ(with(1), DeviceGroups{});
  EXPECT_THAT(test::refusal("strategy", [&] { (void)with(8); }),
              HasSubstr("bn1: a group_size of 8; it must be a power of two that divides the 4 devices"));
}

// Four devices have four rows of pixels each: a window of 3 reads one of either neighbour, one of 5 with stride 2 two
// of the one before and one of the one behind.
TEST(ShardGraph, PixelsOfNeighbours) {
  const ShardedGraph sharded = shard_graph(
      images_network(),
      {{"conv1", {.inputs = {{1, 1, 4, 1}, {1, 1, 1, 1}}}}, {"conv2", {.inputs = {{1, 1, 2, 1}, {1, 1, 1, 1}}}}}, 4);
  std::vector<const Operator*> exchanges;
  for (const Operator& op : sharded.graph.operators) {
    if (op.kind == OperatorKind::neighbour_exchange) exchanges.push_back(&op);
  }
  ASSERT_EQ(exchanges.size(), 2U);
  EXPECT_EQ(exchanges[0]->name, "conv1.height.neighbour_exchange");
  EXPECT_EQ(exchanges[0]->border, (models::Border{1, 1}));
  EXPECT_EQ(exchanges[0]->shape(), (models::Shape{8, 4, 6, 16}));
  EXPECT_EQ(exchanges[1]->border, (models::Border{2, 1}));
  EXPECT_EQ(exchanges[1]->shape(), (models::Shape{8, 8, 7, 8}));
  const models::Program program = models::lower(sharded.graph, {});
  const auto kernel =
      std::ranges::find(program.kernels, "conv2.height.neighbour_exchange:gradient", &models::Kernel::name);
  ASSERT_NE(kernel, program.kernels.end());
  EXPECT_EQ(kernel->communication->neighbours.to(-1), std::uint64_t{8 * 8 * 8 * 2});
  EXPECT_EQ(kernel->communication->neighbours.to(1), std::uint64_t{8 * 8 * 8});
  const auto refused = [](const OperatorStrategy& strategy, const std::string& name) {
    return test::refusal("strategy", [&] { (void)shard_graph(images_network(), {{name, strategy}}, 16); });
  };
  EXPECT_THAT(refused({.inputs = {{1, 1, 8, 1}, {1, 1, 1, 1}}}, "conv2"),
              HasSubstr("height of 4 cannot be cut into 8"));
  EXPECT_THAT(refused({.inputs = {{1, 1, 16, 1}}}, "pool"), HasSubstr("height of 8 cannot be cut into 16"));
}

TEST(ShardGraph, WhatIsReadOfTheBatch) {
  const Graph graph = tokens_network();
  const StrategyMap strategies = transformer_strategies(graph, {.data = 2, .model = 4});
  const ShardedGraph whole = shard_graph(graph, strategies, 8, {.dataset = Cuts{1, 1}});
  EXPECT_EQ(whole.graph.operators[0].shape(), (models::Shape{8, 8}));
  EXPECT_EQ(whole.graph.operators[1].kind, OperatorKind::slice);
  const ShardedGraph parts = shard_graph(graph, strategies, 8, {.dataset = Cuts{8, 1}});
  EXPECT_EQ(parts.graph.operators[0].shape(), (models::Shape{1, 8}));
  EXPECT_EQ(parts.graph.operators[1].kind, OperatorKind::all_gather);
  EXPECT_THAT(test::refusal("strategy",
                            [&] {
                              (void)shard_graph(graph, {}, 8, {.dataset = Cuts{3, 1}});
                            }),
              HasSubstr("cannot be read in (3,1) parts by 8 devices"));
}

TEST(ShardGraph, RefusedGraphs) {
  const Graph graph = tokens_network();
  const auto refusal = [&](const StrategyMap& strategies, Rank devices) {
    return test::refusal("strategy", [&] { (void)shard_graph(graph, strategies, devices); });
  };
  EXPECT_THAT(refusal({{"nobody", {.inputs = {{2, 1}}}}}, 4),
              HasSubstr("nobody: tokens has no operator of this name that could be cut as (2,1)"));
  EXPECT_THAT(refusal({{"input", {.inputs = {{2, 1}}}}}, 4), HasSubstr("input: tokens has no operator"));
  EXPECT_THAT(refusal({}, 0), HasSubstr("1 or more devices, got 0"));
  EXPECT_THAT(refusal({{"table", {.inputs = {{4, 1}, {1, 1}}}}}, 4),
              HasSubstr("head: parameter table.weight is cut as"));
}

}  // namespace
}  // namespace hcclsim::hccl
