#include "study/run/strategies.hpp"

#include "models/inference.hpp"
#include "models/zoo/zoo.hpp"
#include "study/strategy/batch_parallel.hpp"

namespace hcclsim::study {

void exchange_strategies(const RunSpec& spec, Experiment& experiment) {
  const StrategyFiles& files = spec.strategy_files;
  if (files.load.empty() && files.save.empty() && files.groups.empty()) return;
  models::ModelOptions sizes = spec.model;
  sizes.batch = experiment.batch.micro_batch;
  models::Graph network = models::make_model(sizes);
  if (spec.parallel.forward_only) network = models::inference_graph(std::move(network));
  const Rank devices = experiment.training.replica_count();
  const std::uint32_t stage = experiment.training.rank / devices;
  const Rank shard_ranks = experiment.stages.has_value() ? experiment.stages->shard_ranks : 1;
  std::vector<std::uint32_t> layers;
  if (experiment.stages.has_value()) layers = experiment.stages->layers_of_parts;
  const std::vector<models::Graph> graphs = cut_into_stages(network, spec.parallel, layers, devices);
  const BatchParallel of{.graph = graphs[stage],
                         .stage = stage,
                         .devices = devices,
                         .program = experiment.program.get(),
                         .shard_ranks = shard_ranks};
  if (!files.load.empty()) require_batch_parallel(read_strategies(files.load), of, files.load, experiment.notes);
  if (!files.save.empty()) write_strategies(files.save, batch_parallel_strategies(of));
  if (files.groups.empty()) return;
  const bool shared =
      shard_ranks > 1 && shard_ranks <= devices && spec.parallel.optimizer.kind >= hccl::OptimizerParallelKind::on;
  write_groups(files.groups, groups_of(experiment.plan(), experiment.training.rank, devices, shared ? shard_ranks : 1));
}

}  // namespace hcclsim::study
