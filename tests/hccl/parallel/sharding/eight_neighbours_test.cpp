#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hccl/collective/algorithm.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "models/lowering/lower.hpp"
#include "tests/support/training/random_strategies.hpp"
#include "tests/support/training/sharded_training.hpp"

/// Images that are cut along both axes: pixels of up to eight neighbours come in one exchange.
namespace hcclsim::hccl {
namespace {

using models::Operator;
using models::OperatorKind;

/// conv1 (3x3 with padding 1, 8 images of 4 x 16 x 16) over 2 x 4 devices: parts of 8 x 4 pixels.
ShardedGraph grid() {
  return shard_graph(test::images_network(), {{"conv1", {.inputs = {{1, 1, 2, 4}, {1, 1, 1, 1}}}}}, 8);
}

const Operator& exchange_of(const ShardedGraph& sharded) {
  return *std::ranges::find(sharded.graph.operators, OperatorKind::neighbour_exchange, &Operator::kind);
}

TEST(EightNeighbours, ComeInOneExchange) {
  const ShardedGraph sharded = grid();
  EXPECT_EQ(std::ranges::count(sharded.graph.operators, OperatorKind::neighbour_exchange, &Operator::kind), 1);
  const Operator& op = exchange_of(sharded);
  EXPECT_EQ(op.name, "conv1.neighbour_exchange");
  EXPECT_EQ(op.axis, 2U);
  EXPECT_EQ(op.columns, 4U);
  EXPECT_EQ(op.border, (models::Border{1, 1}));
  EXPECT_EQ(op.column_border, (models::Border{1, 1}));
  EXPECT_EQ(op.shape(), (models::Shape{8, 4, 10, 6}));
  EXPECT_EQ(sharded.families.at(op.group.family), (DeviceGroups{{0, 1, 2, 3, 4, 5, 6, 7}}));
}

// Bytes of a direction: rows × columns of the border × channels × samples; of a corner one pixel of each image.
TEST(EightNeighbours, BytesOfEachDirection) {
  const ShardedGraph sharded = grid();
  const models::Program program = models::lower(sharded.graph, {});
  const auto kernel = std::ranges::find(program.kernels, "conv1.neighbour_exchange:forward", &models::Kernel::name);
  ASSERT_NE(kernel, program.kernels.end());
  const models::NeighbourElements& elements = kernel->communication->neighbours;
  constexpr std::uint64_t images = 8 * 4;
  for (const int row : {-1, 0, 1}) {
    for (const int column : {-1, 0, 1}) {
      const std::uint64_t rows = row == 0 ? 8 : 1;
      const std::uint64_t columns = column == 0 ? 4 : 1;
      EXPECT_EQ(elements.to(row, column), row == 0 && column == 0 ? 0 : rows * columns * images)
          << row << "," << column;
    }
  }
}

// In the Plan each device sends to those neighbours that it has: three at a corner of the grid, five at its edge.
TEST(EightNeighbours, PairsOfThePlan) {
  test::ShardedTraining training;
  training.network = test::images_network();
  training.devices = 8;
  training.strategies = {{"conv1", {.inputs = {{1, 1, 2, 4}, {1, 1, 1, 1}}}}};
  const Plan plan = test::plan_of(training, test::stages_of(training, training.network));
  const auto collective =
      std::ranges::find(plan.collectives, "conv1.neighbour_exchange:forward", &PlannedCollective::name);
  ASSERT_NE(collective, plan.collectives.end());
  EXPECT_EQ(collective->operation.collective, Collective::send_recv);
  const std::vector<std::uint64_t>& counts = collective->operation.counts.counts();
  std::map<Rank, int> neighbours;
  for (Rank from = 0; from < 8; ++from) {
    for (Rank to = 0; to < 8; ++to) {
      const std::uint64_t count = counts[from * 8 + to];
      EXPECT_EQ(count, counts[to * 8 + from]);  // equal borders before and behind
      if (count > 0) ++neighbours[from];
    }
  }
  EXPECT_EQ(neighbours, (std::map<Rank, int>{{0, 3}, {1, 5}, {2, 5}, {3, 3}, {4, 3}, {5, 5}, {6, 5}, {7, 3}}));
  EXPECT_EQ(counts[0 * 8 + 1], 8U * 32);  // a column of 8 pixels to the right
  EXPECT_EQ(counts[0 * 8 + 4], 4U * 32);  // a row of 4 pixels down
  EXPECT_EQ(counts[0 * 8 + 5], 1U * 32);  // a corner
}

// A window of 5 with stride 2 and padding 2 needs two pixels before a part and one behind it.
TEST(EightNeighbours, UnevenBorders) {
  const ShardedGraph sharded =
      shard_graph(test::images_network(), {{"conv2", {.inputs = {{1, 1, 2, 2}, {1, 1, 1, 1}}}}}, 4);
  const models::Program program = models::lower(sharded.graph, {});
  const auto named = [&](const std::string& name) {
    return std::ranges::find(program.kernels, name, &models::Kernel::name)->communication->neighbours;
  };
  const models::NeighbourElements forward = named("conv2.neighbour_exchange:forward");
  const models::NeighbourElements gradient = named("conv2.neighbour_exchange:gradient");
  constexpr std::uint64_t images = 8 * 8;
  EXPECT_EQ(forward.to(1, 0), 2 * 4 * images);
  EXPECT_EQ(forward.to(-1, 0), 1 * 4 * images);
  EXPECT_EQ(forward.to(1, 1), 4 * images);
  EXPECT_EQ(forward.to(1, -1), 2 * images);
  EXPECT_EQ(forward.to(-1, -1), images);
  EXPECT_EQ(gradient.to(-1, 0), forward.to(1, 0));
  EXPECT_EQ(gradient.to(-1, 1), forward.to(1, -1));
}

// Where the devices of a row do not follow each other, two exchanges do the same.
TEST(EightNeighbours, OtherMatricesTakeTwoExchanges) {
  OperatorStrategy strategy;
  strategy.layout = LayoutStrategy{{{2, 2}}, {{{}, {}, {0}, {1}}, {{}, {}, {}, {}}}};
  const ShardedGraph sharded = shard_graph(test::images_network(), {{"conv1", strategy}}, 4);
  EXPECT_EQ(std::ranges::count(sharded.graph.operators, OperatorKind::neighbour_exchange, &Operator::kind), 2);
}

}  // namespace
}  // namespace hcclsim::hccl
