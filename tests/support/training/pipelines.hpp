#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hccl/parallel/optimizer_parallel.hpp"
#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/steps.hpp"

/// Pipelines whose cells take known times.
namespace hcclsim::test {

/// Plans are looked at, not simulated: an empty schedule will do.
inline std::shared_ptr<const hccl::Schedule> empty_schedule(const hccl::Communicator& group,
                                                            const hccl::Operation& operation) {
  hccl::Schedule schedule;
  static_cast<hccl::Operation&>(schedule) = operation;
  schedule.ranks = static_cast<Rank>(group.ranks.size());
  return std::make_shared<const hccl::Schedule>(std::move(schedule));
}

/// A perceptron with as many layers.
inline models::Graph perceptron(std::uint32_t layers) {
  std::string name = "mlp:4";
  for (std::uint32_t i = 0; i < layers; ++i) name += ",4";
  return models::make_model({.name = name, .batch = 2});
}

/// Programs of the stages of a perceptron: a layer per chunk. All cells of a direction together take `forward` and
/// `backward` per micro-batch on every stage; nothing else takes time. `sharing`: of the parameters, of 16 bytes and
/// more.
inline std::vector<hccl::StageProgram> timed_stages(const hccl::PipelineShape& shape, Rank ranks_per_stage,
                                                    Seconds forward, Seconds backward,
                                                    const hccl::OptimizerParallel& sharing = {}) {
  const models::Graph graph = perceptron(shape.stages * shape.chunks);
  const auto parts = hccl::even_parts(graph.layers, shape.stages, shape.chunks);
  std::vector<hccl::StageProgram> stages;
  for (const models::Graph& stage : hccl::stage_graphs(graph, parts, shape.stages, ranks_per_stage)) {
    std::vector<std::string> notes;
    const models::ShardingOptions sharding = hccl::share_parameters(stage, sharing, ranks_per_stage, 4, notes);
    models::Program program = lower(stage, {.accumulate = shape.micro_batches > 1, .sharding = sharding});
    for (models::Kernel& kernel : program.kernels) kernel.duration = 0;
    for (const models::Pass& pass : models::passes(program)) {
      const Seconds time = pass.phase == models::Phase::forward ? forward : backward;
      for (std::uint32_t k = pass.first; k < pass.first + pass.count; ++k) {
        models::Kernel& kernel = program.kernels[k];
        if (kernel.kind == models::KernelClass::communication || kernel.launched != models::Launched::always) continue;
        kernel.duration = time / shape.chunks;
        break;
      }
    }
    add_updates(program, {});
    for (models::Kernel& kernel : program.kernels) {
      if (kernel.phase == models::Phase::update) kernel.duration = 0;
    }
    stages.push_back(hccl::fuse_communication(std::move(program), {}));
    stages.back().shard_ranks = hccl::shard_ranks(sharing, ranks_per_stage);
  }
  return stages;
}

}  // namespace hcclsim::test
