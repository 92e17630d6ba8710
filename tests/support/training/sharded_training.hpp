#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hccl/parallel/sharding/shard_graph.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "models/graph.hpp"
#include "models/lowering/precision.hpp"
#include "tests/support/training/steps.hpp"

/// Real training of small networks whose operators are cut over devices, for tests.
namespace hcclsim::test {

struct ShardedTraining {
  models::Graph network{};  ///< with the samples of a micro-batch, of all devices of a stage
  Rank devices = 1;         ///< of each stage
  hccl::StrategyMap strategies{};
  hccl::ShardOptions sharding{};
  Rank experts = 1;                   ///< devices that share experts
  double expert_skew = 0;             ///< of the timed load of dropless ones
  bool shares_communication = false;  ///< operators that do the same share one, with a communicator of its own
  hccl::PipelineShape shape{};
  std::string optimizer_parallel = "off";
  std::string recompute = "none";
  models::Precision precision = models::precision_of(models::Amp::o0);
  bool fp32_sums = false;  ///< of collectives of operators
  hccl::TrainerOptions options{};
};

/// The same on one device, in fp32, with nothing but its micro-batches.
[[nodiscard]] ShardedTraining alone(ShardedTraining training);

/// Rings; pairs for what goes between pairs of ranks.
[[nodiscard]] std::shared_ptr<const hccl::Schedule> ring_or_pairs(const hccl::Communicator& group,
                                                                  const hccl::Operation& operation);

[[nodiscard]] std::vector<hccl::ShardedGraph> stages_of(const ShardedTraining& training, const models::Graph& network);
[[nodiscard]] hccl::Plan plan_of(const ShardedTraining& training, const std::vector<hccl::ShardedGraph>& stages);
/// Timed with the network of `training`; computed with it or, if given, with one of another batch.
[[nodiscard]] std::unique_ptr<hccl::Trainer> make_trainer(const ShardedTraining& training,
                                                          const models::Graph* computed = nullptr);

}  // namespace hcclsim::test
