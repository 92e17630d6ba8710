#include "tests/support/training/parallel_training.hpp"

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "hccl/parallel/start_up.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "tests/support/training/pipelines.hpp"

namespace hcclsim::test {
namespace {

std::shared_ptr<const hccl::Schedule> ring_schedule(const hccl::Communicator& group, const hccl::Operation& operation) {
  if (operation.collective == hccl::Collective::send_recv) return empty_schedule(group, operation);
  return std::make_shared<hccl::Schedule>(hccl::staged(operation, {}, [](const hccl::Operation& in_place) {
    return hccl::build_algorithm(hccl::Algorithm::ring, in_place, {});
  }));
}

}  // namespace

std::vector<models::Graph> stages_of(const ParallelSetup& setup, const models::Graph& whole) {
  const std::uint32_t count = setup.shape.stages;
  std::vector<models::Graph> stages{whole};
  if (count > 1) {
    const auto parts = hccl::even_parts(whole.layers, count, setup.shape.chunks);
    stages = hccl::stage_graphs(whole, parts, count, setup.replicas);
  }
  std::vector<bool> matched;
  const hccl::Recompute recompute = hccl::parse_recompute(setup.recompute);
  for (std::uint32_t stage = 0; stage < count; ++stage) {
    hccl::mark_recomputed(stages[stage], recompute, stage, count, matched);
  }
  return stages;
}

hccl::Plan plan_of(const ParallelSetup& setup, const std::vector<models::Graph>& stages) {
  hccl::OptimizerParallel sharing = hccl::parse_optimizer_parallel(setup.optimizer_parallel);
  sharing.accumulation_shard = setup.accumulation_shard;
  std::vector<hccl::StageProgram> programs;
  std::vector<std::string> notes;
  for (const models::Graph& stage : stages) {
    models::ShardingOptions sharding = hccl::share_parameters(stage, sharing, setup.replicas, sizeof(float), notes);
    if (setup.gathers_again) {
      sharding.gathered_again =
          hccl::parameters_of_recomputed_layers(stage, hccl::parse_recompute(setup.recompute),
                                                static_cast<std::uint32_t>(programs.size()), setup.shape.stages);
    }
    models::Program program = lower(stage, {.precision = setup.precision,
                                            .communication = setup.wire,
                                            .sync = setup.sync,
                                            .accumulate = setup.shape.micro_batches > 1,
                                            .sharding = sharding});
    models::add_updates(program, {.precision = setup.precision,
                                  .optimizer = setup.options.optimizer.rule,
                                  .checks = {.overflow = setup.options.loss_scale.checks_overflow(),
                                             .global_norm = setup.options.clip_norm.has_value()}});
    programs.push_back(hccl::fuse_communication(std::move(program), setup.fusion));
  }
  hccl::StepSpec step = overlapped(setup.shape, setup.shape.stages * setup.replicas);
  if (sharing.kind == hccl::OptimizerParallelKind::dealt) {
    step.dealt = setup.precision.weight;
  } else {
    for (hccl::StageProgram& stage : programs) stage.shard_ranks = hccl::shard_ranks(sharing, setup.replicas);
  }
  return hccl::make_plan(programs, step, ring_schedule);
}

std::unique_ptr<hccl::Trainer> make_trainer(const ParallelSetup& setup) {
  models::Graph whole = models::make_model(setup.model);
  std::vector<models::Graph> stages = stages_of(setup, whole);
  const hccl::Plan plan = plan_of(setup, stages);
  std::vector<hccl::ShardedGraph> roles;
  for (models::Graph& stage : stages) roles.push_back(hccl::replicated(std::move(stage), setup.replicas));
  return std::make_unique<hccl::Trainer>(std::move(whole), std::move(roles), plan, setup.options);
}

hccl::Plan start_up_of(const ParallelSetup& setup) {
  const hccl::Plan plan = plan_of(setup, stages_of(setup, models::make_model(setup.model)));
  std::vector<hccl::StartUp> stages(setup.shape.stages);
  for (std::uint32_t stage = 0; stage < setup.shape.stages; ++stage) {
    for (const models::ParameterShare& share : plan.role(stage * setup.replicas).program->parameters) {
      if (share.shards == 1) stages[stage].broadcast_elements += share.elements;
    }
  }
  return hccl::start_up_plan(stages, plan.ranks(), ring_schedule);
}

std::vector<std::vector<float>> weights_of(hccl::Trainer& trainer) {
  std::vector<std::vector<float>> weights;
  for (std::uint32_t number = 0; number < trainer.graph().parameters.size(); ++number) {
    weights.push_back(trainer.weights(number));
  }
  return weights;
}

}  // namespace hcclsim::test
