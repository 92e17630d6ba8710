#include "study/experiment/experiment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "hccl/comm/groups.hpp"
#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "hccl/parallel/segments/fusion_index.hpp"
#include "models/inference.hpp"
#include "models/profile.hpp"
#include "models/zoo/zoo.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/platform/catalog.hpp"
#include "study/context/compile_checks.hpp"
#include "study/experiment/comm_reuse.hpp"
#include "study/experiment/host_work.hpp"
#include "study/experiment/sharding.hpp"
#include "study/hbm_advice.hpp"
#include "study/platform/link_times.hpp"

namespace hcclsim::study {
namespace {

/// Whether two NPUs have the same type and state the same figures of it.
bool alike(const sim::Npu& a, const sim::Npu& b) {
  if (a.soc != b.soc && sim::soc_of_property(a.soc) != sim::soc_of_property(b.soc)) return false;
  const auto value = [](const sim::Npu& npu, const sim::NpuProperty& property) {
    const auto found = npu.properties.find(std::string(property.key));
    return found == npu.properties.end() ? std::string_view() : std::string_view(found->second);
  };
  const auto properties = sim::npu_properties();
  return std::all_of(properties.begin(), properties.end(),
                     [&](const sim::NpuProperty& property) { return value(a, property) == value(b, property); });
}

/// The number of NPUs that take part, all of one kind: those of the rank table or list, or as the spec says.
Rank npus_of_run(const RunSpec& spec, const LoadedPlatform& platform) {
  const sim::Cluster& cluster = platform.cluster;
  const Rank npus = platform.placed.value_or(spec.npus.value_or(cluster.size()));
  if (const std::vector<Rank>& list = spec.platform.rank_table.npus_list;
      !list.empty() && spec.npus.value_or(npus) != npus) {
    bad_input("option", "--npus-list {} names {} NPUs, but --npus (or device_num) says {}; they must agree",
              hccl::rank_ranges(list), npus, *spec.npus);
  }
  if (npus > cluster.size()) {
    bad_input("option", "--npus {}: {} has {} NPUs; accepted: 1 to {}; platform generate writes larger ones", npus,
              cluster.path(), cluster.size(), cluster.size());
  }
  if (spec.simulation.rank >= npus && spec.is_graph_parallel()) {
    bad_input("runtime-error", "global_rank {} (--rank): device_num is {}; accepted: 0 to {}", spec.simulation.rank,
              npus, npus - 1);
  }
  if (spec.simulation.rank >= npus) {
    bad_input("option", "--rank {}: the run has {} NPUs; accepted: 0 to {}", spec.simulation.rank, npus, npus - 1);
  }
  for (Rank rank = 1; rank < npus; ++rank) {
    const sim::Npu& first = cluster.npu(0);
    const sim::Npu& other = cluster.npu(rank);
    if (alike(first, other)) continue;
    bad_input("platform",
              "{}: NPU 0 ({}, {}) and NPU {} ({}, {}) differ{}; NPUs that train together must be of one kind{}",
              cluster.path(), first.name, first.soc, rank, other.name, other.soc,
              first.soc == other.soc ? " in their properties" : "",
              platform.placed.has_value() ? "" : fmt::format(": --npus {} takes those before", rank));
  }
  return npus;
}

/// Variables of HCCL that change what a run does: what it costs, or the memory that it takes. All of its reductions are
/// deterministic, as HCCL_DETERMINISTIC asks.
std::vector<std::string_view> variables_of(const RunSpec& spec) {
  std::vector<std::string_view> variables{"HCCL_ALGO", "HCCL_BUFFSIZE", "HCCL_DETERMINISTIC", "HCCL_EXEC_TIMEOUT",
                                          "HCCL_INTER_HCCS_DISABLE"};
  if (spec.step.launch != hccl::LaunchMode::op) return variables;
  variables.emplace_back("HCCL_OP_EXPANSION_MODE");
  variables.insert(variables.end(), queue_pairs.begin(), queue_pairs.end());
  return variables;
}

/// How MindSpore fuses the gradients of data parallelism; none: they are split as HCCL does.
std::optional<hccl::FusionRule> rule_of_gradients(const RunSpec& spec, const models::Program& program,
                                                  std::vector<std::string>& notes) {
  std::optional<hccl::FusionRule> rule;
  if (spec.parallel.fusion.has_value()) rule = spec.parallel.fusion->allreduce;
  if (spec.fusion_index.has_value()) rule = {.mode = hccl::FusionMode::index, .last = *spec.fusion_index};
  if (spec.parallel.fusion_ids.empty()) return rule;
  std::vector<std::string> names(program.gradients.size());
  for (const models::Gradient& gradient : program.gradients) names[gradient.parameter] = gradient.name;
  require_matches(names, spec.parallel.fusion_ids);
  std::vector<std::uint32_t> ids = ids_of(names, spec.parallel.fusion_ids);
  if (rule.has_value() && rule->mode == hccl::FusionMode::id) {
    rule->ids = std::move(ids);
    return rule;
  }
  if (spec.is_graph_parallel()) {
    notes.emplace_back("set_comm_fusion has no effect without openstate False: comm_fusion writes its own ids");
    return rule;
  }
  const hccl::FusionRule whole{.mode = hccl::FusionMode::all};
  const hccl::FusionRule with = with_ids(rule.value_or(whole), std::move(ids));
  if (rule.has_value() && rule->mode == hccl::FusionMode::index && with.mode != rule->mode) {
    notes.emplace_back("the fusion index has no effect: differing ids of set_comm_fusion count before it");
  }
  return rule.has_value() || with != whole ? std::optional(with) : std::nullopt;
}

/// Whether ranks keep parts of some parameters.
bool keeps_parts(const LoweredStages& stages) {
  for (std::size_t stage = 0; stage < stages.graphs.size(); ++stage) {
    const std::vector<models::ParameterShare>& shares = stages.programs[stage].parameters;
    for (std::uint32_t number = 0; number < shares.size(); ++number) {
      if (shares[number].shards > 1 || stages.graphs[stage].is_cut(number)) return true;
    }
  }
  return false;
}

/// LARS and LAMB scale the update of a parameter by its norm. MindSpore's compiler does not touch the operators of
/// optimizers, so that each rank takes the norm of what it keeps; others need that of the whole.
void judge_norms(const RunSpec& spec, const LoweredStages& stages, std::vector<std::string>& notes) {
  const bool norms = spec.optimizer == models::Optimizer::lars || spec.optimizer == models::Optimizer::lamb;
  if (!norms || spec.step.shape.forward_only || !keeps_parts(stages)) return;
  if (!spec.is_graph_parallel() || spec.parallel.optimizer.kind > hccl::OptimizerParallelKind::on) {
    bad_input("unsupported",
              "{} needs the norm of every whole parameter, of which a rank has a part only; choose another optimizer, "
              "optimizer parallel off and operators that are not cut, or MindSpore's parallel_mode semi_auto_parallel, "
              "in which a rank takes the norms of its parts",
              name_of(spec.optimizer));
  }
  notes.push_back(
      fmt::format("{}: a rank takes the norms of the parts of parameters that it keeps, as MindSpore's compiler has it",
                  name_of(spec.optimizer)));
}

/// Of a step; where sizes do not go together the number that is asked for, so that the devices are judged first.
std::uint32_t micro_batches_of(const RunSpec& spec, Rank npus) {
  const ParallelSpec& parallel = spec.parallel;
  if (npus % (spec.step.shape.stages * parallel.operators.sharing()) != 0) return parallel.micro_batches.value_or(1);
  return parallel.batch_sizes(spec.model.batch, spec.replicas(npus)).micro_batches;
}

}  // namespace

device::ProgramOptions options_of_program(const RunSpec& spec, Rank npus) {
  // In semi_auto_parallel and auto_parallel what follows a mirror divides, and a replica alone has no mirrors (R1.16):
  // then its gradients have the types of their parameters.
  const bool divides = !spec.is_graph_parallel() || spec.devices(npus) > 1;
  std::optional<models::GradientSync> sync = spec.gradient_sync;
  if (sync.has_value() && !divides) sync = models::GradientSync{.as_written = sync->as_written};
  return {
      .precision = spec.precision,
      .optimizer = spec.optimizer,
      .gradient_type = spec.communication_type,
      .gradient_sync = sync,
      .fp32_sums = spec.fp32_sums,
      .checks = spec.gradient_checks(),
      .fused_attention = spec.fused_attention,
      .forward_only = spec.step.shape.forward_only,
      .gradients_mean = divides && spec.gradients_mean_kernels && !spec.step.compression.has_value(),  // a hook divides
      .mean_again = divides && spec.mean_again};
}

Experiment::Experiment(const RunSpec& spec, sim::Cluster& on, ShardedNetworks* known)
    : LoadedPlatform(spec.platform.rank_table, spec.platform.hccl_settings, variables_of(spec), on),
      npus(npus_of_run(spec, *this)),
      training{.stages = {}, .step = spec.step, .simulation = spec.simulation},
      data_parallel(spec.is_data_parallel()) {
  ShardedNetworks none;
  load(spec);
  segment(spec, lower(spec, known != nullptr ? *known : none));
  complete(spec);
}

void Experiment::load(const RunSpec& spec) {
  notes.insert(notes.end(), soc_notes.begin(), soc_notes.end());
  notes.insert(notes.end(), spec.notes.begin(), spec.notes.end());
  check_recomputed_communication(spec.parallel, spec.step.shape, notes);
  if (spec.step.launch == hccl::LaunchMode::op && config.op_expansion == hccl::OpExpansion::aiv) {
    notes.emplace_back(
        "HCCL_OP_EXPANSION_MODE AIV is documented for inference: a training step takes the default mode");
  }
  training.step.config = config;
  training.simulation.skew = device::Skew(spec.skew, npus);
  training.simulation.faults = sim::FaultPlan::of(cluster, spec.faults, npus);
  check_compilation(spec, npus, micro_batches_of(spec, npus));
  spec.require_ranks(npus);
  replicas = spec.replicas(npus);
  batch = spec.parallel.batch_sizes(spec.model.batch, replicas);
  training.step.npus = npus;
  training.step.shape.micro_batches = batch.micro_batches;
  compute_type = spec.precision.compute;
  operators = spec.parallel.operators;
  sharing = name_of(spec.parallel.optimizer.kind);
  if (spec.simulation.hbm_contention) share_hbm(spec);
  training.step.comm_reuse = comm_reuse_on(*this, spec);
  mirrors_divide = spec.gradients_mean_kernels && spec.is_graph_parallel();
  failures = spec.failures;
  if (spec.parallel.optimizer.accumulation_shard && spec.parallel.optimizer.kind < hccl::OptimizerParallelKind::on) {
    notes.emplace_back("gradient_accumulation_shard has no effect: no parameters are shared (--optimizer-parallel)");
  }
  if (spec.step.pad_segments && spec.step.compression.has_value()) {
    bad_input("option",
              "--pad-segments is for allreduces, in whose place --compress puts a hook; leave out one of them");
  }
  if (spec.step.shape.forward_only && spec.step.compression.has_value()) {
    bad_input("option", "--compress is of gradients, of which --forward-only has none; leave out one of them");
  }
}

device::ProgramOptions Experiment::program_options(const RunSpec& spec) const {
  device::ProgramOptions how = options_of_program(spec, npus);
  how.accumulate = batch.micro_batches > 1;
  return how;
}

LoweredStages Experiment::lower(const RunSpec& spec, ShardedNetworks& known) {
  LoweredStages lowered;
  if (!data_parallel || spec.gradients_file.empty()) {
    model = spec.model.name;
    lowered = lower_network(spec, known);
  } else {
    lowered.programs.push_back(load_gradients(spec));
  }
  graphs = lowered.graphs;
  layers_of_parts = lowered.layers_of_parts;
  recomputed_flops = lowered.recomputed;
  return lowered;
}

LoweredStages Experiment::lower_network(const RunSpec& spec, ShardedNetworks& known) {
  const models::Graph graph = network_of_micro_batch(spec);
  const hccl::PipelineShape& shape = training.step.shape;
  ParallelSpec parallel = spec.parallel;
  if (!data_parallel && parallel.optimizer.accumulation_shard && shape.stages == 1 && batch.micro_batches == 1) {
    parallel.optimizer.accumulation_shard = false;
    notes.emplace_back(
        "gradient_accumulation_shard has no effect: the step has one micro-batch and no pipeline, so no gradients are "
        "added up");
  }
  std::vector<std::string> told;
  const Rank devices = spec.devices(npus);
  const OperatorStrategies of_file = strategies_of_file(graph, parallel.operators, devices, told);
  place_layers(of_file, graph, shape, parallel);
  const std::shared_ptr<const hccl::ShardedGraph> network =
      known.shard(graph, sizes_of_micro_batch(spec), parallel, shape, devices, notes);
  const bool told_what_to_read = parallel.operators.dataset.has_value() || of_file.has_regions;
  if (parallel.operators.cuts() && told_what_to_read) read_as_cut(*input, *network, batch.micro_batches, npus);
  if (data_parallel && !spec.profiles.empty()) {
    LoweredStages measured{.graphs = cut_into_stages(*network, parallel, shape, {}), .programs = {}};
    measured.programs.push_back(load_profile(spec, measured.graphs.front().graph));
    return measured;
  }
  if (!spec.profile_model.empty() && data_parallel) {
    bad_input("option", "--profile-model chooses a model of a file of --profile: give one");
  }
  LinkTimes links(cluster, network->devices);
  return lower_stages(*network, parallel, shape, soc, program_options(spec), links, notes);
}

void Experiment::segment(const RunSpec& spec, LoweredStages lowered) {
  if (data_parallel) {
    segment_data_parallel(spec, std::move(lowered.programs.front()));
  } else {
    segment_stages(spec, lowered);
  }
  program = training.program();
  gradient_sizes = program->gradient_sizes();
}

void Experiment::segment_data_parallel(const RunSpec& spec, models::Program loaded) {
  has_measured_gradients = !spec.gradients_file.empty();
  const std::optional<hccl::FusionRule> rule = rule_of_gradients(spec, loaded, notes);
  name_fusion(spec, rule);
  const models::Program* const whole = &loaded;
  note_communication_types(spec, {&whole, 1}, notes);
  std::vector<hccl::Segment> fused;
  if (loaded.has_several_gradient_types()) {
    fused = fuse_types_apart(rule, loaded);
  } else if (rule.has_value()) {
    fused = fuse(*rule, loaded);
  }
  if (spec.step.framework == Framework::mindspore) order_updates_by_parameter(loaded);
  gradient_sizes = loaded.gradient_sizes();
  training.stages.push_back({.program = std::make_shared<models::Program>(std::move(loaded)), .reductions = {}});
  if (!graphs.empty()) training.stages.front().families = graphs.front().families;
  split_gradients(spec, fused);
}

void Experiment::segment_stages(const RunSpec& spec, LoweredStages& lowered) {
  note_idle_ids(lowered.graphs, spec.parallel, notes);
  if (spec.step.framework == Framework::mindspore) {
    for (models::Program& stage : lowered.programs) order_updates_by_parameter(stage);
  }
  judge_norms(spec, lowered, notes);
  FusedStages fused = fuse_stages(lowered, spec.parallel, training.step.shape, soc, program_options(spec), notes);
  training.stages = std::move(fused.programs);
  if (!spec.profiles.empty()) import_profile_of_stages(spec);
  const bool dealt = spec.parallel.optimizer.kind == hccl::OptimizerParallelKind::dealt;
  fusion = dealt ? to_string(fused.fusion.allreduce) : to_string(fused.fusion);
  if (spec.parallel.fusion.has_value() || !spec.parallel.fusion_ids.empty()) {
    gradient_rule = fmt::format("fusion {}", to_string(fused.fusion.allreduce));
  }
  if (dealt) deal_parameters(spec);
  if (spec.step.shape.forward_only && spec.parallel.result_broadcast) share_results(spec);
  std::vector<const models::Program*> programs;
  for (const hccl::StageProgram& one : training.stages) programs.push_back(one.program.get());
  note_communication_types(spec, programs, notes);
}

/// Those of the last stage, as a device has them.
void Experiment::share_results(const RunSpec& spec) {
  hccl::StageProgram& last = training.stages.back();
  last.result_type = spec.fp32_sums ? DataType::fp32 : spec.precision.compute;
  for (const models::Tensor& result : models::results_of(graphs.back().graph)) {
    last.results.push_back(result.shape.elements() * batch.micro_batches);
  }
}

void Experiment::complete(const RunSpec& spec) {
  hbm_of_stages = hbm_of(training.stages, training.step, config.communicator_bytes());
  for (device::HbmAccount& account : hbm_of_stages) account.activations += training.result_bytes();
  share_communication();
  if (training.step.compression.has_value()) add_compression();
  check_memory(spec);
  add_start_up(spec);
  add_host(spec);
  if (!data_parallel && (training.replica_count() == 1 || spec.step.shape.forward_only)) return;
  note_algorithm(spec.platform.hccl_settings, training.allreduce_request(0, program->gradient_type()),
                 topology_of(training.replicas(), cluster));
}

void Experiment::share_hbm(const RunSpec& spec) {
  if (spec.simulation.network == sim::NetworkKind::simgrid) {
    bad_input("option",
              "--hbm-contention on does not go with --network simgrid, whose transfers load links alone; give fluid");
  }
  if (!spec.faults.empty()) {
    bad_input(
        "option",
        "--hbm-contention on does not go with --fault: when kernels that share an HBM stop, slow down or go on is "
        "not simulated; leave out one of them");
  }
  notes.push_back(
      fmt::format("HBM contention: kernels, copies and transfers of an NPU share {:g} GB/s of HBM, kernels and AI-core "
                  "reductions take the AI cores one after the other; the costs of single collectives, where they are "
                  "given, are those on NPUs that do nothing else",
                  soc.hbm_bandwidth / giga));
  if (!spec.gradients_file.empty()) {
    notes.push_back(
        fmt::format("HBM contention: {} does not tell what its kernels read and write, so transfers do not "
                    "slow them down; updates follow the cost model",
                    spec.gradients_file));
  } else if (!spec.profiles.empty()) {
    notes.emplace_back(
        "HBM contention: of measured kernels, bytes are those of the cost model, where it has the kernel");
  }
}

std::uint32_t Experiment::samples_of_micro_batch(const RunSpec& spec) const {
  return batch.micro_batch * (spec.parallel.operators.cuts() ? replicas : 1);
}

models::ModelOptions Experiment::sizes_of_micro_batch(const RunSpec& spec) const {
  models::ModelOptions sizes = spec.model;
  sizes.batch = samples_of_micro_batch(spec);
  return sizes;
}

models::Graph Experiment::network_of_micro_batch(const RunSpec& spec) {
  models::Graph graph = models::make_model(sizes_of_micro_batch(spec));
  layers = graph.layers;
  check_dataset_cuts(spec, graph, spec.devices(npus));
  if (spec.step.shape.forward_only) graph = models::inference_graph(std::move(graph));
  const auto attends = [](const models::Operator& op) { return op.kind == models::OperatorKind::attention; };
  transformer = std::ranges::any_of(graph.operators, attends);
  if (transformer && graph.input_kind == models::InputKind::tokens) {
    tokens_per_sample = graph.operators.front().shape().channels();
  }
  input = input_reading(spec, graph, batch, npus);
  flops_per_sample =
      (spec.step.shape.forward_only ? 1 : 3) * models::model_flops(graph, spec.parallel.causal_flops) / graph.batch();
  return graph;
}

void Experiment::check_memory(const RunSpec& spec) {
  const device::HbmAccount& fullest = *std::ranges::max_element(hbm_of_stages, {}, &device::HbmAccount::peak);
  const HbmSetting setting{.replicas = replicas,
                           .layers = layers,
                           .samples = batch.micro_batch,
                           .micro_batches = batch.micro_batches,
                           .gradients = fullest.gradients,
                           .capacity = soc.hbm_bytes};
  std::string warning = check_hbm(fullest, soc, spec.hbm_check, overfull_stages(hbm_of_stages, soc.hbm_bytes),
                                  hbm_advice(fullest, spec, setting));
  if (!warning.empty()) notes.push_back(std::move(warning));
}

/// O4.13 of MindSpore's data_parallel mode: the optimizer is one that can be dealt, and every rank has parameters.
void Experiment::deal_parameters(const RunSpec& spec) {
  if (spec.step.shape.stages > 1) {
    bad_input("option", "--optimizer-parallel dealt is of data parallelism: it does not go with --stages");
  }
  require_dealt_optimizer("--optimizer-parallel dealt", spec.optimizer);
  const std::size_t parameters = graphs.front().graph.parameters.size();
  if (parameters < npus) {
    bad_input("runtime-error", "--optimizer-parallel dealt: {} parameters cannot be dealt to {} NPUs", parameters,
              npus);
  }
  training.step.dealt = spec.precision.weight;
}

void Experiment::add_start_up(const RunSpec& spec) {
  start_up.resize(training.stages.size());
  for (std::size_t stage = 0; stage < training.stages.size(); ++stage) {
    const models::Program& of_stage = *training.stages[stage].program;
    for (const models::Kernel& kernel : of_stage.kernels) {
      if (kernel.launched == models::Launched::before_all) start_up[stage].copies.push_back(kernel);
    }
    if (!spec.parameter_broadcast) continue;
    for (std::uint32_t number = 0; number < of_stage.parameters.size(); ++number) {
      const models::ParameterShare& share = of_stage.parameters[number];
      const bool cut = stage < graphs.size() && graphs[stage].is_cut(number);
      if (share.shards == 1 && !cut) start_up[stage].broadcast_elements += share.elements;
    }
  }
}

void Experiment::add_host(const RunSpec& spec) {
  images_per_second = spec.host.images_per_second.value_or(0);
  launch_is_assumed = spec.host.launch_is_assumed;
  const InputReading unknown{.samples = std::uint64_t{batch.micro_batch} * batch.micro_batches};
  add_host_work(spec.host, input.value_or(unknown), cluster, soc.name, training, notes);
}

models::Program Experiment::load_gradients(const RunSpec& spec) {
  if (!spec.profiles.empty() || spec.numerics.has_value()) {
    bad_input("option", "measured gradients replace the model: they go neither with profiles nor with real gradients");
  }
  require_no_operators(spec, spec.gradients_file);
  model = spec.gradients_file;
  models::Program measured =
      make_program(models::read_gradient_profile(spec.gradients_file), soc, program_options(spec), notes);
  measured.batch = spec.model.batch;
  return measured;
}

models::Program Experiment::load_profile(const RunSpec& spec, const models::Graph& graph) {
  const Profiles profiles = read_profiles(spec.profiles, spec.profile_model);
  if (const std::string file = profiles.gradients_file(); !file.empty()) {
    require_no_operators(spec, file);
    model = file;
  }
  models::Program measured =
      imported_program(profiles, graph, soc, program_options(spec), batch.micro_batches, profile.emplace(), notes);
  if (spec.step.host_launch.has_value()) leave_out_idle_time(measured);
  return measured;
}

}  // namespace hcclsim::study
