#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "models/graph_builder.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "tests/hccl/parallel/sharding/device_numbers.hpp"
#include "tests/support/refusal.hpp"

/// Tables whose rows devices have in parts that are not equal (manual_split), or that hosts have (primitive_target).
namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::GraphBuilder;
using models::Operator;
using models::OperatorKind;
using testing::ElementsAre;
using testing::HasSubstr;

/// 64 rows of 8 features, 4 samples of 8 categories: MindSpore's example of parts of 10, 20, 30 and 4 rows.
Graph categories(std::uint32_t rows = 64) {
  GraphBuilder builder = GraphBuilder::of_tokens("categories", 4, 8);
  const auto x = builder.token_embedding("table", GraphBuilder::input(), rows, 8);
  const auto joined = builder.join_rows("join", x);
  const auto last = builder.linear("head", joined, 4, true);
  return std::move(builder).finish(last);
}

OperatorStrategy split(std::vector<std::uint32_t> rows, std::uint32_t features = 1) {
  const auto parts = static_cast<std::uint32_t>(rows.size());
  return {.inputs = {{parts, features}, {1, parts}}, .manual_split = std::move(rows)};
}

OperatorSharding shard_table(const OperatorStrategy& strategy, Rank devices, std::uint32_t rows = 64) {
  const Graph graph = categories(rows);
  return shard_operator(WholeGraph(graph), 1, &strategy, devices);
}

const Operator& operator_of(const ShardedGraph& sharded, OperatorKind kind) {
  const auto found = std::ranges::find(sharded.graph.operators, kind, &Operator::kind);
  EXPECT_NE(found, sharded.graph.operators.end());
  return *found;
}

TEST(SplitTables, RowsAndOffsetsOfMindSporesExample) {
  const OperatorSharding sharding = shard_table(split({10, 20, 30, 4}), 4);
  const TensorLayout& table = sharding.parameters.front();
  EXPECT_THAT(table.rows, ElementsAre(10, 20, 30, 4));
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint32_t> rows;
  for (Rank device = 0; device < 4; ++device) {
    offsets.push_back(table.offsets(device)[0]);
    rows.push_back(table.own_shape(device).size(0));
  }
  EXPECT_THAT(offsets, ElementsAre(0, 10, 30, 60));
  EXPECT_THAT(rows, ElementsAre(10, 20, 30, 4));
  EXPECT_EQ(35 - offsets[2], 5U);  // row 35 is row 5 of device 2
  EXPECT_EQ(table.slice_shape(), (models::Shape{30, 8}));
  EXPECT_EQ(table.copies(), 1U);
  EXPECT_TRUE(sharding.partial.empty());
  EXPECT_EQ(sharding.outputs.front().slice_shape(), (models::Shape{4, 2, 8}));
  EXPECT_EQ(to_string(table), "(1,4,1,1): (2,-) in (10,20,30,4) rows");
}

TEST(SplitTables, FeaturesAreCutBesides) {
  const TensorLayout table = shard_table(split({40, 24}, 2), 4).parameters.front();
  EXPECT_EQ(table.slice_shape(), (models::Shape{40, 4}));
  EXPECT_EQ(table.offsets(3), (std::vector<std::uint32_t>{40, 4}));
}

// Column k of the tokens looks up sub-table k alone: nothing is added up, and no gradient is summed.
TEST(SplitTables, LookUpWithoutCommunication) {
  const ShardedGraph sharded = shard_graph(categories(), {{"table", split({10, 20, 30, 4})}}, 4);
  const Operator& table = operator_of(sharded, OperatorKind::token_embedding);
  EXPECT_THAT(table.row_parts, ElementsAre(10, 20, 30, 4));
  EXPECT_EQ(sharded.families.at(table.group.family), (DeviceGroups{{0, 1, 2, 3}}));
  EXPECT_EQ(sharded.graph.parameters[0].elements, 30U * 8);
  EXPECT_EQ(sharded.mirrors[0], ShardedGraph::no_family);
  const Operator& next = sharded.graph.operators[2];
  EXPECT_NE(next.kind, OperatorKind::all_reduce);
  EXPECT_NE(next.kind, OperatorKind::reduce_scatter);
  const models::Program program = models::lower(sharded.graph, {});
  EXPECT_EQ(std::ranges::count(program.kernels, std::string("table:weight_gradient"), &models::Kernel::name), 1);
}

TEST(SplitTables, ComputeTheSame) {
  const Graph graph = categories();
  std::mt19937 random(3);
  numbers::Numbers batch{{4, 8}, std::vector<double>(32)};
  const std::vector<std::uint32_t> first{0, 10, 30, 60};
  const std::vector<std::uint32_t> rows{10, 20, 30, 4};
  for (std::size_t i = 0; i < batch.values.size(); ++i) {
    const std::size_t part = i % 8 / 2;
    batch.values[i] = first[part] + random() % rows[part];
  }
  std::vector<numbers::Numbers> parameters;
  for (const models::Parameter& parameter : graph.parameters) {
    numbers::Numbers& one = parameters.emplace_back(numbers::Numbers{models::Shape(parameter.shape), {}});
    for (std::uint64_t i = 0; i < parameter.elements; ++i) one.values.push_back(static_cast<double>(random() % 1000));
  }
  const auto expected = numbers::compute(shard_graph(graph, {}, 1), batch, parameters).front();
  const ShardedGraph sharded = shard_graph(graph, {{"table", split({10, 20, 30, 4})}}, 4, {.enable_alltoall = true});
  const auto found = numbers::compute(sharded, batch, parameters);
  const std::vector<std::uint32_t> values = sharded.graph.first_values();
  for (models::OperatorId id = 0; id < sharded.graph.operators.size(); ++id) {
    const Operator& op = sharded.graph.operators[id];
    if (op.name != "table" && op.name != "head") continue;
    const TensorLayout& layout = sharded.values[values[id]].value();
    numbers::Numbers whole = expected[op.original];
    whole.shape = layout.shape;
    for (Rank device = 0; device < 4; ++device) {
      const numbers::Numbers part = numbers::part_of(whole, layout.offsets(device), layout.slice_shape());
      EXPECT_EQ(found[device][values[id]].values, part.values) << op.name << " of device " << device;
    }
  }
}

TEST(SplitTables, EveryRuleIsAnError) {
  const auto refusal = [](const OperatorStrategy& strategy, Rank devices = 4) {
    return test::refusal("strategy", [&] { (void)shard_table(strategy, devices); });
  };
  OperatorStrategy one = split({10, 20, 30, 4});
  EXPECT_THAT(refusal(split({10, 20, 30, 5})), HasSubstr("the parts have 65 rows together, the table has 64"));
  one.manual_split = {30, 34};
  EXPECT_THAT(refusal(one), HasSubstr("manual_split has 2 parts, the rows of the table are cut into 4"));
  one = split({32, 32});
  one.inputs[1] = {1, 1};
  EXPECT_THAT(refusal(one, 2), HasSubstr("the positions of the tokens into 1; they must be as many"));
  one = split({32, 32});
  one.inputs[1] = {2, 2};
  EXPECT_THAT(refusal(one), HasSubstr("only the positions of the tokens can be cut, not their batch into 2"));
  EXPECT_THAT(refusal(split({1, 29, 30, 4})), HasSubstr("a part of 1 rows; each has the rows of 2 positions"));
  EXPECT_THAT(refusal(split({10, 20, 30, 4}), 8), HasSubstr("parts of the table to 4 devices, there are 8"));
  EXPECT_THAT(
      refusal({.inputs = {}, .layout = LayoutStrategy{{{4}}, {{{0}, {}}, {{}, {0}}}}, .manual_split = {32, 32}}),
      HasSubstr("manual_split goes with numbers of parts, not a Layout"));
  const Graph graph = categories();
  const OperatorStrategy head{.inputs = {{4, 1}, {1, 1}}, .manual_split = {1, 1}};
  EXPECT_THAT(test::refusal("strategy", [&] { (void)shard_operator(WholeGraph(graph), 3, &head, 4); }),
              HasSubstr("manual_split is for tables of tokens, the operator is of kind linear"));
  // Two operators with the same table have to split it alike.
  GraphBuilder builder = GraphBuilder::of_tokens("tied", 4, 8);
  const auto x = builder.token_embedding("table", GraphBuilder::input(), 64, 8);
  const auto last = builder.tied_linear("head", x, 1, false);
  const Graph tied = std::move(builder).finish(last);
  EXPECT_THAT(
      test::refusal(
          "strategy",
          [&] {
            (void)shard_graph(tied, {{"table", split({10, 20, 30, 4})}, {"head", {.inputs = {{1, 1}, {4, 1}}}}}, 4);
          }),
      HasSubstr("parameter table.weight is cut as"));
}

// A table on the host is looked up there; its rows come over the link to the device, their gradients go back, and what
// the optimizer keeps of it is on the host, too.
TEST(HostTables, AreLookedUpAndUpdatedByTheHost) {
  const OperatorStrategy strategy{.inputs = {{4, 1}, {1, 1}}, .on_host = true};
  const ShardedGraph sharded = shard_graph(categories(), {{"table", strategy}}, 4);
  EXPECT_TRUE(operator_of(sharded, OperatorKind::token_embedding).on_host);
  EXPECT_EQ(operator_of(sharded, OperatorKind::host_copy).shape(), (models::Shape{32, 8}));
  EXPECT_EQ(sharded.graph.operators[2].kind, OperatorKind::host_copy);
  EXPECT_EQ(operator_of(sharded, OperatorKind::reduce_scatter).name, "table.reduce_scatter");
  models::ShardingOptions alone{.alone = {true, false, false}};
  models::Program program = models::lower(sharded.graph, {.sharding = alone});
  models::add_updates(program, {.optimizer = models::Optimizer::momentum});
  std::vector<std::string> of_host;
  for (const models::Kernel& kernel : program.kernels) {
    if (kernel.kind == models::KernelClass::host) of_host.push_back(kernel.name);
  }
  EXPECT_THAT(of_host, testing::SizeIs(3));
  EXPECT_THAT(of_host, testing::Contains("table:forward"));
  EXPECT_THAT(of_host, testing::Contains("table:weight_gradient"));
  const auto copies = [&](models::Phase phase) {
    std::uint64_t elements = 0;
    for (const models::Kernel& kernel : program.micro_batch()) {
      if (kernel.kind != models::KernelClass::communication || kernel.phase != phase) continue;
      if (kernel.communication->kind == OperatorKind::host_copy) elements += kernel.communication->elements;
    }
    return elements;
  };
  EXPECT_EQ(copies(models::Phase::forward), 32U * 8);
  EXPECT_EQ(copies(models::Phase::backward), 32U * 8);
  const Bytes part = 16 * 8 * sizeof(float);  // of 64 rows
  EXPECT_EQ(program.host, 3 * part);          // weights, gradient, momentum
  const models::Program without =
      models::lower(shard_graph(categories(), {{"table", {.inputs = strategy.inputs}}}, 4).graph, {.sharding = alone});
  EXPECT_EQ(without.weights - program.weights, part);
  EXPECT_EQ(without.gradient_bytes - program.gradient_bytes, part);
}

TEST(HostTables, HaveOneCopy) {
  const auto refusal = [](const OperatorStrategy& strategy) {
    return test::refusal("strategy", [&] { (void)shard_table(strategy, 4); });
  };
  EXPECT_THAT(refusal({.inputs = {{1, 1}, {4, 1}}, .on_host = true}),
              HasSubstr("a table on the host in 4 copies; with primitive_target CPU each of the 4 devices"));
  const Graph graph = categories();
  const OperatorStrategy head{.inputs = {{4, 1}, {1, 1}}, .on_host = true};
  EXPECT_THAT(test::refusal("strategy", [&] { (void)shard_operator(WholeGraph(graph), 3, &head, 4); }),
              HasSubstr("primitive_target CPU is for tables of tokens, the operator is of kind linear"));
}

}  // namespace
}  // namespace hcclsim::hccl
