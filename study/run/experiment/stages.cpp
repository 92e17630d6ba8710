#include "study/run/experiment/stages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "hccl/parallel/experts/expert_places.hpp"
#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "hccl/parallel/plan/live_memory.hpp"
#include "hccl/parallel/segments/fusion_ids.hpp"
#include "hccl/parallel/segments/fusion_index.hpp"
#include "hccl/parallel/sharding/kept_slices.hpp"
#include "study/run/experiment/balanced_stages.hpp"

namespace hcclsim::study {
namespace {

void require_matched(const models::Graph& graph, const ParallelSpec& spec, const std::vector<bool>& matched) {
  const auto missing = std::ranges::find(matched, false);
  if (missing == matched.end()) return;
  const std::string& name = spec.recompute.operators[static_cast<std::size_t>(missing - matched.begin())];
  const std::vector<std::string> kinds = hccl::recomputable(graph);
  std::vector<std::string> candidates = kinds;
  for (const models::Operator& op : graph.operators) {
    candidates.push_back(op.name.substr(op.name.rfind('.') + 1));
    candidates.push_back(op.name);
  }
  bad_input("option", "--recompute operators: no operator of {} is called '{}', nor is one of its kinds: {}{}",
            graph.title, name, fmt::join(kinds, ", "), did_you_mean(name, candidates));
}

std::vector<std::uint32_t> layers_of_parts(const hccl::ShardedGraph& network, const ParallelSpec& spec,
                                           const hccl::PipelineShape& shape, const device::Soc& soc,
                                           const device::ProgramOptions& how, LinkTimes& links) {
  const std::uint32_t parts = shape.stages * shape.chunks;
  if (spec.balanced) return balanced_layers(network, spec, shape, soc, how, links);
  if (spec.stage_layers.empty()) return hccl::even_parts(network.graph.layers, shape.stages, shape.chunks);
  if (spec.stage_layers.size() != parts) {
    bad_input("pipeline", "--stage-layers has {} numbers; {} stages of {} chunks need {}", spec.stage_layers.size(),
              shape.stages, shape.chunks, parts);
  }
  return spec.stage_layers;
}

/// The rules of a stage's collectives, with the ids of its parameters.
hccl::FusionRules rules_of_stage(const models::Program& program, std::uint32_t number, const ParallelSpec& spec,
                                 const hccl::PipelineShape& shape, std::vector<std::string>& notes) {
  hccl::FusionRules rules = asked_rules(spec);
  std::vector<std::string> beyond;
  note_indices_beyond(rules.allreduce, static_cast<std::uint32_t>(program.parameters.size()), beyond);
  for (const std::string& note : beyond) {
    notes.push_back(shape.stages == 1 ? note : fmt::format("stage {}: {}", number, note));
  }
  std::vector<std::string> names;
  for (const models::ParameterShare& share : program.parameters) names.push_back(share.name);
  for (hccl::FusionRule* const rule : {&rules.allreduce, &rules.reduce_scatter, &rules.allgather}) {
    if (rule->mode == hccl::FusionMode::id) rule->ids = ids_of(names, spec.fusion_ids);
  }
  const bool index = rules.allreduce.mode == hccl::FusionMode::index;
  if (spec.optimizer.kind == hccl::OptimizerParallelKind::dealt && !index && !spec.fusion_ids.empty()) {
    rules.allreduce = with_ids(rules.allreduce, ids_of(names, spec.fusion_ids));
  }
  return rules;
}

/// Bytes of the two neighbouring gathers that need most: one is in use while the next one comes.
Bytes most_gathered(const hccl::StageProgram& stage) {
  Bytes most = 0;
  Bytes before = 0;
  for (const hccl::WeightGather& gather : stage.gathers) {
    if (!gather.each_use) continue;
    Bytes bytes = 0;
    for (const std::uint32_t parameter : gather.parameters) {
      const models::ParameterShare& share = stage.program->parameters[parameter];
      bytes += share.elements * size_of(share.used_as);
    }
    most = std::max(most, before + bytes);
    before = bytes;
  }
  return most;
}

/// Communicators of a rank of a stage: messages, groups that operators name, and of parameters those that have the same
/// of them, those that share them, and those with the same parts.
std::uint32_t communicators_of(const hccl::StageProgram& stage, const hccl::StepSpec& step) {
  std::uint32_t count = step.shape.stages > 1 ? 1 : 0;
  const auto add = [&](Rank ranks, bool shared) {
    if (ranks > 1) ++count;
    if (shared && stage.shard_ranks > 1 && stage.shard_ranks < ranks) count += 2;
  };
  if (stage.families.empty()) {
    add(step.stage_ranks(), true);
    return count;
  }
  std::vector<bool> named(stage.families.size(), false);
  for (const models::Kernel& kernel : stage.program->micro_batch()) {
    if (kernel.kind != models::KernelClass::communication) continue;
    const models::OperatorKind kind = kernel.communication->kind;
    const bool message = kind == models::OperatorKind::send || kind == models::OperatorKind::receive ||
                         kind == models::OperatorKind::host_copy;
    if (!message) named[kernel.communication->group.family] = true;
  }
  std::vector<bool> sums(stage.families.size(), false);
  for (const hccl::Reduction& reduction : stage.reductions) sums[reduction.copies] = true;
  for (std::size_t family = 0; family < named.size(); ++family) {
    if (named[family] || sums[family]) add(static_cast<Rank>(stage.families[family].front().size()), sums[family]);
  }
  return count;
}

/// How the devices of a stage hold its parameters.
std::vector<hccl::ParameterCopies> copies_of(const hccl::ShardedGraph& stage) {
  std::vector<hccl::ParameterCopies> copies;
  for (std::uint32_t number = 0; number < stage.mirrors.size(); ++number) {
    copies.push_back({stage.copies(number), stage.parameters[number].shape.elements()});
  }
  return copies;
}

models::ShardingOptions sharding_of(const hccl::ShardedGraph& stage, const ParallelSpec& spec, std::uint32_t number,
                                    std::uint32_t count, Bytes element, std::vector<std::string>& notes) {
  models::ShardingOptions sharding =
      hccl::share_parameters(stage.graph, spec.optimizer, stage.devices, element, notes, copies_of(stage));
  for (const std::uint32_t mirror : stage.mirrors) {
    sharding.alone.push_back(mirror == hccl::ShardedGraph::no_family);
  }
  if (spec.parallel_optimizer_comm_recompute && count == 1 && sharding.kind == models::Sharding::weights) {
    sharding.gathered_again = hccl::parameters_of_recomputed_layers(stage.graph, spec.recompute, number, count);
  }
  return sharding;
}

/// Where devices get different numbers of rows for their experts, each has the times of its own.
void add_programs_of_places(const hccl::ShardedGraph& part, const device::Soc& soc,
                            const device::ProgramOptions& options, hccl::StageProgram& stage) {
  std::vector<std::string> notes;  // those of the stage have been given
  std::vector<std::shared_ptr<const models::Program>> of_places;
  for (const Rank place : hccl::expert_places(part)) {
    while (of_places.size() <= place) {
      const auto next = static_cast<Rank>(of_places.size());
      of_places.push_back(hccl::program_of_place(
          *stage.program, make_program(hccl::graph_of_place(part.graph, next), soc, options, notes)));
    }
    stage.of_devices.push_back(of_places[place]);
  }
}

}  // namespace

void check_recomputed_communication(const ParallelSpec& spec, const hccl::PipelineShape& shape,
                                    std::vector<std::string>& notes) {
  using enum hccl::RecomputeKind;
  // What a file of strategies marks may be layers.
  const bool of_layers = spec.recompute.kind == full || spec.recompute.kind == layers || spec.operators.has_files();
  const bool asked =
      spec.parallel_optimizer_comm_recompute || spec.recompute_slice_activation || !spec.mp_comm_recompute;
  if (asked && !of_layers) {
    bad_input(
        "option",
        "--parallel-optimizer-comm-recompute, --mp-comm-recompute and --recompute-slice-activation say how layers "
        "are recomputed; give --recompute full or layers:N with them, or a --strategy that recomputes operators");
  }
  if (spec.parallel_optimizer_comm_recompute && spec.optimizer.kind != hccl::OptimizerParallelKind::on) {
    bad_input("option",
              "--parallel-optimizer-comm-recompute is of weights that --optimizer-parallel on gathers; it is {}",
              name_of(spec.optimizer.kind));
  }
  if (spec.parallel_optimizer_comm_recompute && shape.stages > 1) {
    notes.emplace_back("parallel_optimizer_comm_recompute is ignored in a pipeline, as MindSpore does");
  }
  if (!spec.operators.cuts() && (spec.recompute_slice_activation || !spec.mp_comm_recompute)) {
    notes.push_back(fmt::format("{} has no effect: no operator is cut over ranks, so that layers have no collectives",
                                spec.mp_comm_recompute ? "recompute_slice_activation" : "mp_comm_recompute"));
  }
}

hccl::FusionRules asked_rules(const ParallelSpec& spec) {
  hccl::FusionRules rules = spec.fusion.value_or(hccl::FusionRules{});
  if (spec.optimizer.kind != hccl::OptimizerParallelKind::dealt) return rules;
  if (!spec.fusion.has_value()) rules.allreduce.mode = hccl::FusionMode::all;
  if (rules.allreduce.mode == hccl::FusionMode::size) rules.allreduce.ends_above = true;
  return rules;
}

void note_idle_ids(std::span<const hccl::ShardedGraph> stages, const ParallelSpec& spec,
                   std::vector<std::string>& notes) {
  if (spec.fusion_ids.empty()) return;
  std::vector<std::string> names;
  for (const hccl::ShardedGraph& stage : stages) {
    for (const models::Parameter& parameter : stage.graph.parameters) names.push_back(parameter.name);
  }
  require_matches(names, spec.fusion_ids);
  const hccl::FusionRules rules = asked_rules(spec);
  using enum hccl::FusionMode;
  if (spec.optimizer.kind == hccl::OptimizerParallelKind::dealt) {
    if (rules.allreduce.mode != index) return;
    notes.emplace_back(
        "set_comm_fusion has no effect: with enable_parallel_optimizer in data_parallel the fusion index counts before "
        "it");
    return;
  }
  if (rules.allreduce.mode == id || rules.reduce_scatter.mode == id || rules.allgather.mode == id) return;
  notes.emplace_back(
      "set_comm_fusion has no effect, as fusion by size writes its own ids: comm_fusion with openstate False, or "
      "--fusion id, lets them count");
}

std::vector<hccl::ShardedGraph> cut_into_stages(const hccl::ShardedGraph& network, const ParallelSpec& spec,
                                                const hccl::PipelineShape& shape,
                                                std::span<const std::uint32_t> layers_of_parts) {
  const std::uint32_t count = shape.stages;
  std::vector<hccl::ShardedGraph> stages = hccl::sharded_stages(network, layers_of_parts, count);
  std::vector<bool> matched;
  for (std::uint32_t number = 0; number < count; ++number) {
    hccl::mark_recomputed(stages[number].graph, spec.recompute, number, count, matched, spec.mp_comm_recompute);
    if (spec.recompute_slice_activation) hccl::slice_kept_activations(stages[number]);
  }
  require_matched(network.graph, spec, matched);
  return stages;
}

Flops recomputed_flops(const models::Graph& graph, const models::Program& program, bool causal) {
  std::set<models::OperatorId> again;
  for (const models::Kernel& kernel : program.micro_batch()) {
    if (kernel.recomputed && kernel.op != models::no_operator) again.insert(kernel.op);
  }
  Flops sum = 0;
  for (const models::OperatorId op : again) sum += product_flops(graph, graph.operators[op], causal);
  return sum;
}

bool reduces_as_gathered(const ParallelSpec& spec, const hccl::PipelineShape& shape) {
  return spec.optimizer.kind == hccl::OptimizerParallelKind::on && shape.stages == 1 && shape.micro_batches == 1;
}

LoweredStages lower_stages(const hccl::ShardedGraph& network, const ParallelSpec& spec,
                           const hccl::PipelineShape& shape, const device::Soc& soc, const device::ProgramOptions& how,
                           LinkTimes& links, std::vector<std::string>& notes) {
  hccl::require_shape(shape);
  const std::uint32_t count = shape.stages;
  LoweredStages stages;
  stages.shard_ranks = hccl::shard_ranks(spec.optimizer, network.devices);
  if (spec.optimizer.kind == hccl::OptimizerParallelKind::on && spec.optimizer.shard == 1U) {
    notes.push_back(fmt::format("optimizer parallel: a shard size of 1 is ignored, as MindSpore does; it is {}",
                                stages.shard_ranks));
  }
  if (count > 1) stages.layers_of_parts = layers_of_parts(network, spec, shape, soc, how, links);
  stages.graphs = cut_into_stages(network, spec, shape, stages.layers_of_parts);
  for (std::uint32_t number = 0; number < count; ++number) {
    const hccl::ShardedGraph& part = stages.graphs[number];
    device::ProgramOptions options = how;
    options.sharding =
        stages.sharing.emplace_back(sharding_of(part, spec, number, count, size_of(how.precision.weight), notes));
    stages.programs.push_back(make_program(part.graph, soc, options, notes));
    stages.recomputed += recomputed_flops(part.graph, stages.programs.back(), spec.causal_flops);
  }
  return stages;
}

FusedStages fuse_stages(LoweredStages& lowered, const ParallelSpec& spec, const hccl::PipelineShape& shape,
                        const device::Soc& soc, const device::ProgramOptions& how, std::vector<std::string>& notes) {
  FusedStages stages;
  for (std::uint32_t number = 0; number < lowered.graphs.size(); ++number) {
    const hccl::ShardedGraph& part = lowered.graphs[number];
    models::Program& program = lowered.programs[number];
    hccl::FusionRules fusion = rules_of_stage(program, number, spec, shape, notes);
    device::ProgramOptions options = how;
    options.sharding = std::move(lowered.sharing[number]);
    const bool as_gathered = options.sharding.kind != models::Sharding::none && reduces_as_gathered(spec, shape);
    if (as_gathered && spec.fusion.has_value() && fusion.reduce_scatter != fusion.allgather) {
      notes.emplace_back(
          "fusion of reduce-scatters has no effect: without --micro-batches and --stages they travel as the allgathers "
          "whose gradients they are");
    }
    hccl::StageProgram& stage =
        stages.programs.emplace_back(fuse_communication(std::move(program), fusion, as_gathered, part.mirrors));
    stage.families = part.families;
    stage.cut = spec.operators.cuts();
    stage.shard_ranks = lowered.shard_ranks;
    if (hccl::experts_differ(part.graph)) add_programs_of_places(part, soc, options, stage);
    if (as_gathered) fusion.reduce_scatter = fusion.allgather;
    stages.fusion = std::move(fusion);
  }
  return stages;
}

std::vector<device::HbmAccount> hbm_of(std::span<const hccl::StageProgram> stages, const hccl::StepSpec& step,
                                       Bytes communicator) {
  std::vector<device::HbmAccount> accounts;
  for (std::uint32_t number = 0; number < stages.size(); ++number) {
    const hccl::StageProgram& stage = stages[number];
    device::HbmAccount& hbm =
        accounts.emplace_back(device::hbm_account(*stage.program, communicator * communicators_of(stage, step)));
    hbm.gathered += most_gathered(stage);
    if (step.shape.stages > 1) {
      hbm.activations = hccl::live_peak(*stage.program, cells_of_stage(step.shape, number)).bytes;
    }
    hbm.gradients += hccl::most_waiting_gradients(*stage.program, stage.reductions, step.hcom_parallel);
  }
  return accounts;
}

}  // namespace hcclsim::study
