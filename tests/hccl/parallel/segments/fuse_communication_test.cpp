#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hccl/parallel/optimizer_parallel.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/precision.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::hccl {
namespace {

using Groups = std::vector<std::vector<std::uint32_t>>;

/// Parameters of the reductions that scatter.
Groups scattered(const StageProgram& stage) {
  Groups groups;
  for (const Reduction& reduction : stage.reductions) {
    if (!reduction.scattered) continue;
    std::vector<std::uint32_t>& parameters = groups.emplace_back();
    for (std::uint32_t gradient = reduction.segment.first; gradient <= reduction.segment.last; ++gradient) {
      parameters.push_back(stage.program->gradients[gradient].parameter);
    }
    std::ranges::sort(parameters);
  }
  std::ranges::sort(groups);
  return groups;
}

/// O4.8: the fusion ids of AllGathers are those of their gradients, unless these are added up first.
TEST(FuseCommunication, ReduceScattersTravelAsAllgathersDo) {
  const models::Graph graph = models::make_model({.name = "mlp:64,64,64,64", .batch = 4});
  std::vector<std::string> notes;
  const models::ShardingOptions sharding =
      share_parameters(graph, {.kind = OptimizerParallelKind::on, .threshold = 0}, 4, sizeof(float), notes);
  const models::Program program =
      lower(graph, {.precision = models::precision_of(models::Amp::o0), .sharding = sharding});
  // Weights of 64 × 64 and biases of 64, a quarter of each kept: 4096, 64, 4096, 64, … bytes.
  const FusionRules rules{.reduce_scatter = {.mode = FusionMode::none}, .allgather = {.threshold = 5000}};
  const StageProgram alone = fuse_communication(program, rules);
  const StageProgram together = fuse_communication(program, rules, true);
  Groups gathered;
  for (const WeightGather& gather : together.gathers) gathered.push_back(gather.parameters);
  EXPECT_EQ(gathered, (Groups{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(scattered(together), gathered);
  EXPECT_EQ(scattered(alone), (Groups{{0}, {1}, {2}, {3}, {4}, {5}}));
}

}  // namespace
}  // namespace hcclsim::hccl
