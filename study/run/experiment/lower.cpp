#include "study/run/experiment/lower.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "models/inference.hpp"
#include "models/profile.hpp"
#include "models/zoo/zoo.hpp"
#include "study/files/context/compile_checks.hpp"
#include "study/platform/link_times.hpp"
#include "study/run/experiment/sharding/sharding.hpp"

namespace hcclsim::study {
namespace {

models::Graph network_of_micro_batch(LoadedRun& run) {
  models::Graph graph = models::make_model(run.sizes_of_micro_batch());
  run.layers = graph.layers;
  check_dataset_cuts(run.spec, graph, run.spec.devices(run.npus));
  if (run.spec.step.shape.forward_only) graph = models::inference_graph(std::move(graph));
  const auto attends = [](const models::Operator& op) { return op.kind == models::OperatorKind::attention; };
  run.transformer = std::ranges::any_of(graph.operators, attends);
  if (run.transformer && graph.input_kind == models::InputKind::tokens) {
    run.tokens_per_sample = graph.operators.front().shape().channels();
  }
  run.input = input_reading(run.spec, graph, run.batch, run.npus);
  run.flops_per_sample = (run.spec.step.shape.forward_only ? 1 : 3) *
                         models::model_flops(graph, run.spec.parallel.causal_flops) / graph.batch();
  return graph;
}

models::Program load_gradients(LoadedRun& run) {
  if (!run.spec.profiles.empty() || run.spec.numerics.has_value()) {
    bad_input("option", "measured gradients replace the model: they go neither with profiles nor with real gradients");
  }
  require_no_operators(run.spec, run.spec.gradients_file);
  run.model = run.spec.gradients_file;
  models::Program measured =
      make_program(models::read_gradient_profile(run.spec.gradients_file), run.soc, run.program_options(), run.notes);
  measured.batch = run.spec.model.batch;
  return measured;
}

models::Program load_profile(const models::Graph& graph, LoadedRun& run) {
  const Profiles profiles = read_profiles(run.spec.profiles, run.spec.profile_model);
  if (const std::string file = profiles.gradients_file(); !file.empty()) {
    require_no_operators(run.spec, file);
    run.model = file;
  }
  models::Program measured = imported_program(profiles, graph, run.soc, run.program_options(), run.batch.micro_batches,
                                              run.profile.emplace(), run.notes);
  if (run.spec.step.host_launch.has_value()) leave_out_idle_time(measured);
  return measured;
}

LoweredStages lower_network(LoadedRun& run, ShardedNetworks& known) {
  const models::Graph graph = network_of_micro_batch(run);
  const hccl::PipelineShape& shape = run.training.step.shape;
  ParallelSpec parallel = run.spec.parallel;
  if (!run.data_parallel && parallel.optimizer.accumulation_shard && shape.stages == 1 &&
      run.batch.micro_batches == 1) {
    parallel.optimizer.accumulation_shard = false;
    run.notes.emplace_back(
        "gradient_accumulation_shard has no effect: the step has one micro-batch and no pipeline, so no gradients are "
        "added up");
  }
  std::vector<std::string> told;
  const Rank devices = run.spec.devices(run.npus);
  const OperatorStrategies of_file = strategies_of_file(graph, parallel.operators, devices, told);
  place_layers(of_file, graph, shape, parallel);
  const std::shared_ptr<const hccl::ShardedGraph> network =
      known.shard(graph, run.sizes_of_micro_batch(), parallel, shape, devices, run.notes);
  const bool told_what_to_read = parallel.operators.dataset.has_value() || of_file.has_regions;
  if (parallel.operators.cuts() && told_what_to_read)
    read_as_cut(*run.input, *network, run.batch.micro_batches, run.npus);
  if (run.data_parallel && !run.spec.profiles.empty()) {
    LoweredStages measured{.graphs = cut_into_stages(*network, parallel, shape, {}), .programs = {}};
    measured.programs.push_back(load_profile(measured.graphs.front().graph, run));
    return measured;
  }
  if (!run.spec.profile_model.empty() && run.data_parallel) {
    bad_input("option", "--profile-model chooses a model of a file of --profile: give one");
  }
  LinkTimes links(run.cluster, network->devices);
  return lower_stages(*network, parallel, shape, run.soc, run.program_options(), links, run.notes);
}

}  // namespace

LoweredStages lower(LoadedRun& run, ShardedNetworks& known) {
  LoweredStages lowered;
  if (!run.has_measured_gradients()) {
    run.model = run.spec.model.name;
    lowered = lower_network(run, known);
  } else {
    lowered.programs.push_back(load_gradients(run));
  }
  run.graphs = lowered.graphs;
  run.layers_of_parts = lowered.layers_of_parts;
  run.recomputed_flops = lowered.recomputed;
  return lowered;
}

}  // namespace hcclsim::study
