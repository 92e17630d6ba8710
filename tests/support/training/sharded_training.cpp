#include "tests/support/training/sharded_training.hpp"

#include <utility>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/parallel/comm_reuse/comm_reuse.hpp"
#include "hccl/parallel/experts/expert_parallel.hpp"
#include "hccl/parallel/optimizer_parallel.hpp"
#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "hccl/parallel/recompute.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"

namespace hcclsim::test {
namespace {

hccl::Algorithm algorithm_of(hccl::Collective collective) {
  if (collective == hccl::Collective::alltoall) return hccl::Algorithm::pairwise;
  if (collective == hccl::Collective::send_recv) return hccl::Algorithm::direct;
  return hccl::Algorithm::ring;
}

}  // namespace

ShardedTraining alone(ShardedTraining training) {
  training.devices = 1;
  training.strategies.clear();
  training.experts = 1;
  training.shape.stages = 1;
  training.optimizer_parallel = "off";
  training.recompute = "none";
  training.precision = models::precision_of(models::Amp::o0);
  return training;
}

std::shared_ptr<const hccl::Schedule> ring_or_pairs(const hccl::Communicator& /*group*/,
                                                    const hccl::Operation& operation) {
  const auto build = [&](const hccl::Operation& asked) {
    return hccl::build_algorithm(algorithm_of(operation.collective), asked, {});
  };
  return std::make_shared<hccl::Schedule>(
      operation.collective == hccl::Collective::send_recv ? build(operation) : hccl::staged(operation, {}, build));
}

std::vector<hccl::ShardedGraph> stages_of(const ShardedTraining& training, const models::Graph& network) {
  hccl::ShardedGraph sharded =
      training.devices == 1 && training.strategies.empty()
          ? hccl::replicated(network, 1)
          : hccl::shard_graph(network, training.strategies, training.devices, training.sharding);
  if (training.experts > 1)
    sharded =
        hccl::share_experts(std::move(sharded), {.ranks = training.experts, .load = {.skew = training.expert_skew}});
  const std::uint32_t count = training.shape.stages;
  std::vector<std::uint32_t> parts;
  if (count > 1) parts = hccl::even_parts(sharded.graph.layers, count, training.shape.chunks);
  std::vector<hccl::ShardedGraph> stages = hccl::sharded_stages(sharded, parts, count);
  std::vector<bool> matched;
  for (std::uint32_t stage = 0; stage < count; ++stage) {
    hccl::mark_recomputed(stages[stage].graph, hccl::parse_recompute(training.recompute), stage, count, matched);
  }
  return stages;
}

hccl::Plan plan_of(const ShardedTraining& training, const std::vector<hccl::ShardedGraph>& stages) {
  const hccl::OptimizerParallel sharing = hccl::parse_optimizer_parallel(training.optimizer_parallel);
  std::vector<hccl::StageProgram> programs;
  std::vector<std::string> notes;
  for (const hccl::ShardedGraph& stage : stages) {
    std::vector<hccl::ParameterCopies> copies;
    std::vector<bool> alone;
    for (std::uint32_t parameter = 0; parameter < stage.mirrors.size(); ++parameter) {
      copies.push_back({stage.copies(parameter), stage.parameters[parameter].shape.elements()});
      alone.push_back(stage.mirrors[parameter] == hccl::ShardedGraph::no_family);
    }
    models::ShardingOptions shares =
        hccl::share_parameters(stage.graph, sharing, stage.devices, sizeof(float), notes, copies);
    shares.alone = alone;
    models::Program program = lower(stage.graph, {.precision = training.precision,
                                                  .fp32_sums = training.fp32_sums,
                                                  .accumulate = training.shape.micro_batches > 1,
                                                  .sharding = shares});
    models::add_updates(program, {.precision = training.precision,
                                  .optimizer = training.options.optimizer.rule,
                                  .checks = {.overflow = training.options.loss_scale.checks_overflow(),
                                             .global_norm = training.options.clip_norm.has_value()}});
    programs.push_back(hccl::fuse_communication(std::move(program), {}, false, stage.mirrors));
    programs.back().families = stage.families;
    programs.back().cut = !stage.families.empty();
    programs.back().shard_ranks = hccl::shard_ranks(sharing, training.devices);
  }
  const hccl::StepSpec step = overlapped(training.shape, training.shape.stages * training.devices);
  hccl::Plan plan = hccl::make_plan(programs, step, ring_or_pairs);
  if (training.shares_communication) {
    hccl::reuse_communication(plan, {.streams = {.tasks_per_stream = 300},  // one operator on each
                                     .servers = std::vector<std::uint32_t>(plan.ranks(), 0)});
  }
  return plan;
}

std::unique_ptr<hccl::Trainer> make_trainer(const ShardedTraining& training, const models::Graph* computed) {
  const std::vector<hccl::ShardedGraph> stages = stages_of(training, training.network);
  const hccl::Plan plan = plan_of(training, stages);
  hccl::TrainerOptions options = training.options;
  if (!options.make_schedule) options.make_schedule = ring_or_pairs;
  if (computed == nullptr) return std::make_unique<hccl::Trainer>(training.network, stages, plan, options);
  ShardedTraining even = training;
  even.expert_skew = 0;  // real gates say what comes
  return std::make_unique<hccl::Trainer>(*computed, stages_of(even, *computed), plan, options);
}

}  // namespace hcclsim::test
