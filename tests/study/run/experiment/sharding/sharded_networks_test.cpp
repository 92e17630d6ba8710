#include "study/run/experiment/sharding/sharded_networks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hccl/training/training.hpp"
#include "models/zoo/zoo.hpp"
#include "study/compare/plans/plan_search.hpp"
#include "study/run/run.hpp"

namespace hcclsim::study {
namespace {

models::ModelOptions gpt_of(std::uint32_t batch) {
  return {
      .name = "gpt2-small", .batch = batch, .sequence = 32, .layers = 2, .hidden = 64, .heads = 4, .vocabulary = 128};
}

TEST(ShardedNetworks, AreCutOnce) {
  ShardedNetworks known;
  std::vector<std::string> notes;
  ParallelSpec spec;
  hccl::PipelineShape shape;
  spec.operators.model = 2;
  const auto shard = [&](std::uint32_t batch, Rank devices) {
    return known.shard(models::make_model(gpt_of(batch)), gpt_of(batch), spec, shape, devices, notes);
  };
  const auto first = shard(8, 4);
  // What is computed again and what replicas share is no part of it.
  spec.recompute = hccl::parse_recompute("full");
  spec.optimizer = hccl::parse_optimizer_parallel("zero1");
  EXPECT_EQ(shard(8, 4), first);
  EXPECT_NE(shard(4, 4), first);
  EXPECT_NE(shard(8, 2), first);
  spec.operators.sequence = true;
  EXPECT_NE(shard(8, 4), first);
  shape.forward_only = true;
  const auto applied = shard(8, 4);
  shape.forward_only = false;
  EXPECT_NE(shard(8, 4), applied);
  spec.operators.sequence = false;
  EXPECT_EQ(shard(8, 4), first);
}

// Experiments that share what was cut are the same as those that do not, and so is the step that is simulated alone.
TEST(ShardedNetworks, ChangeNothing) {
  RunSpec spec;
  spec.platform.file = HCCLSIM_PLATFORM_DIR "/atlas800t-a2.xml";
  spec.model = gpt_of(4);
  spec.simulation.network = sim::NetworkKind::fluid;
  spec.simulation.fold = hccl::Fold::automatic;
  spec.parallel.batch_given = true;
  spec.optimizer = models::Optimizer::adam;
  for (const std::uint32_t stages : {1U, 2U}) {
    spec.step.shape.stages = stages;
    spec.parallel.micro_batches = 2;
    for (const std::uint32_t iterations : {1U, 3U}) {
      spec.simulation.iterations = iterations;
      const std::vector<double> same = on_cluster(spec.platform, [&](sim::Cluster& cluster) {
        ShardedNetworks known;
        std::vector<double> equal;
        for (const char* const shared : {"off", "zero1", "zero3"}) {
          RunSpec one = spec;
          one.parallel.operators.model = 2;
          one.parallel.optimizer = hccl::parse_optimizer_parallel(shared);
          sim::Cluster first = cluster.of_another_job();
          sim::Cluster second = cluster.of_another_job();
          Experiment fresh(one, first);
          Experiment again(one, second, &known);
          equal.push_back(fresh.notes == again.notes && hbm_peak(fresh) == hbm_peak(again) &&
                                  step_bound(fresh) == step_bound(again) &&
                                  fresh.simulate(fresh.training).step_times[fresh.training.simulation.rank] ==
                                      simulated_step(again)
                              ? 1
                              : 0);
        }
        return equal;
      });
      EXPECT_EQ(same, std::vector<double>(3, 1)) << stages << " stages, " << iterations << " iterations";
    }
  }
}

}  // namespace
}  // namespace hcclsim::study
