#include "hccl/parallel/sharding/kept_slices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hccl/parallel/recompute.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"

/// What recomputed layers start from, kept in parts.
namespace hcclsim::hccl {
namespace {

/// Two layers of 16 features, 8 rows of them, shared by two devices.
ShardedGraph recomputed_layers(bool sequence_parallel) {
  const models::Graph network = models::make_model(
      {.name = "gpt2-small", .batch = 2, .sequence = 4, .layers = 2, .hidden = 16, .heads = 2, .vocabulary = 32});
  ShardedGraph sharded =
      shard_graph(network, transformer_strategies(network, {.model = 2, .sequence_parallel = sequence_parallel}), 2);
  std::vector<bool> matched;
  mark_recomputed(sharded.graph, {.kind = RecomputeKind::full}, 0, 1, matched);
  return sharded;
}

std::vector<const models::Kernel*> kernels_with(const models::Program& program, const std::string& part) {
  std::vector<const models::Kernel*> found;
  for (const models::Kernel& kernel : program.kernels) {
    if (kernel.name.find(part) != std::string::npos) found.push_back(&kernel);
  }
  return found;
}

TEST(KeptSlices, LayersStartFromHalves) {
  ShardedGraph sharded = recomputed_layers(false);
  const models::Program whole = lower(sharded.graph, {});
  slice_kept_activations(sharded);
  const models::Program parts = lower(sharded.graph, {});
  // Of each layer one tensor: sliced in the forward pass, gathered in the backward pass alone.
  for (const models::Kernel* const kernel : kernels_with(parts, ".kept_slice:")) {
    EXPECT_EQ(kernel->phase, models::Phase::forward);
  }
  EXPECT_EQ(kernels_with(parts, ".kept_slice:").size(), 2U);
  const auto gathers = kernels_with(parts, ".kept_slices:");
  ASSERT_EQ(gathers.size(), 2U);
  for (const models::Kernel* const kernel : gathers) {
    EXPECT_EQ(kernel->phase, models::Phase::backward);
    EXPECT_EQ(kernel->communication->kind, models::OperatorKind::all_gather);
    EXPECT_EQ(kernel->communication->elements, 8U * 16 / 2);
  }
  EXPECT_EQ(parts.kernels.size(), whole.kernels.size() + 4);
  // At the end of the forward pass a half of what each layer starts from is there.
  const auto at_loss = [](const models::Program& program) {
    const auto loss = std::ranges::find_if(
        program.kernels, [](const models::Kernel& kernel) { return kernel.name.find("loss") != std::string::npos; });
    return live_bytes(program)[static_cast<std::size_t>(loss - program.kernels.begin())];
  };
  EXPECT_LT(at_loss(parts), at_loss(whole));
}

// What a stage receives is kept in slices like what it makes.
TEST(KeptSlices, OfEveryStage) {
  const ShardedGraph sharded = recomputed_layers(false);
  const std::vector<std::uint32_t> parts{1, 1};
  for (ShardedGraph& stage : sharded_stages(sharded, parts, 2)) {
    ASSERT_EQ(stage.values.size(), stage.graph.first_values().back());
    const std::size_t operators = stage.graph.operators.size();
    slice_kept_activations(stage);
    EXPECT_EQ(stage.graph.operators.size(), operators + 2) << stage.graph.title;
  }
}

// Rows that the devices share anyway are not shared once more.
TEST(KeptSlices, PartsStayAsTheyAre) {
  ShardedGraph sharded = recomputed_layers(true);
  const std::size_t operators = sharded.graph.operators.size();
  slice_kept_activations(sharded);
  EXPECT_EQ(sharded.graph.operators.size(), operators);
}

// Without layouts nothing is known of what devices have alike.
TEST(KeptSlices, AWholeNetworkIsLeftAlone) {
  ShardedGraph network = replicated(models::make_model({.name = "mlp:4,4", .batch = 2}), 2);
  slice_kept_activations(network);
  EXPECT_EQ(network.graph.operators.size(), models::make_model({.name = "mlp:4,4", .batch = 2}).operators.size());
}

}  // namespace
}  // namespace hcclsim::hccl
