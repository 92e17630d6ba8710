#include "study/run/experiment/strategies.hpp"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "models/inference.hpp"
#include "models/zoo/zoo.hpp"
#include "study/files/strategy/batch_parallel.hpp"
#include "study/files/strategy/operator_strategies.hpp"
#include "study/run/experiment/sharding/sharding.hpp"
#include "study/run/experiment/stages.hpp"

namespace hcclsim::study {
namespace {

void exchange_strategy_files(const RunSpec& spec, Experiment& experiment) {
  const StrategyFiles& files = spec.strategy_files;
  if (experiment.program->parameters.empty()) {
    bad_input(
        "option",
        "{}: a list of gradients has no operators, so it has no strategies: leave out the files of strategies, or "
        "give --model",
        experiment.model);
  }
  models::ModelOptions sizes = spec.model;
  sizes.batch = experiment.samples_of_micro_batch();
  models::Graph network = models::make_model(sizes);
  if (spec.step.shape.forward_only) network = models::inference_graph(std::move(network));
  const Rank devices = experiment.training.step.stage_ranks();
  const std::uint32_t stage = experiment.training.simulation.rank / devices;
  const std::vector<std::uint32_t>& layers = experiment.layers_of_parts;
  const bool cuts = spec.parallel.operators.cuts();
  const std::vector<hccl::ShardedGraph> graphs =
      cuts ? experiment.graphs
           : cut_into_stages(hccl::replicated(network, devices), spec.parallel, experiment.training.step.shape, layers);
  BatchParallel of{.graph = graphs[stage].graph,
                   .stage = stage,
                   .devices = devices,
                   .program = experiment.program.get(),
                   .shard_ranks = experiment.training.stage().shard_ranks,
                   .accumulates = experiment.batch.micro_batches > 1 && !spec.step.shape.forward_only,
                   .only_trainable = files.only_trainable};
  if (!spec.step.shape.forward_only) of.optimizer = spec.optimizer;
  if (cuts) {
    of.sharded = &graphs[stage];
    if (files.save.empty()) return;
    std::vector<std::string> known;  // they have been told
    const OperatorParallel& operators = spec.parallel.operators;
    const OperatorStrategies of_file = strategies_of_file(network, operators, devices, known);
    const hccl::StrategyMap strategies =
        strategies_of(network, spec.parallel, experiment.training.step.shape, of_file, devices, known);
    std::vector<std::uint32_t> stages(network.operators.size(), 0);
    if (!layers.empty()) stages = hccl::parts_of_operators(network, layers);
    for (std::uint32_t& part : stages) part %= spec.step.shape.stages;
    write_strategies(files.save,
                     {.nodes = node_strategies(network, strategies, devices, stages), .parameters = layouts_of(of)});
    return;
  }
  if (!files.load.empty()) require_batch_parallel(read_strategies(files.load), of, files.load, experiment.notes);
  if (!files.save.empty()) write_strategies(files.save, batch_parallel_strategies(of));
}

/// In data_parallel mode MindSpore makes no groups, and all ranks have the same weights.
GroupMap group_map(const RunSpec& spec, Experiment& experiment) {
  if (!spec.is_graph_parallel()) {
    GroupMap map;
    map.restore_ranks.resize(experiment.npus);
    std::iota(map.restore_ranks.begin(), map.restore_ranks.end(), Rank{0});
    return map;
  }
  const Rank devices = experiment.training.step.stage_ranks();
  const hccl::ShardedGraph whole{.devices = devices};
  const hccl::ShardedGraph& graph =
      experiment.data_parallel ? whole : experiment.graphs[experiment.training.simulation.rank / devices];
  return groups_of(experiment.plan(), experiment.training.simulation.rank, graph, *experiment.program);
}

}  // namespace

void exchange_strategies(const RunSpec& spec, Experiment& experiment) {
  const StrategyFiles& files = spec.strategy_files;
  if (!files.load.empty() || !files.save.empty()) exchange_strategy_files(spec, experiment);
  if (!files.groups.empty()) write_groups(files.groups, group_map(spec, experiment));
}

}  // namespace hcclsim::study
