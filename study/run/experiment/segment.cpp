#include "study/run/experiment/segment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "hccl/comm/groups.hpp"
#include "hccl/parallel/segments/fusion_index.hpp"
#include "models/inference.hpp"
#include "study/files/context/compile_checks.hpp"
#include "study/files/profile/profile_set.hpp"

namespace hcclsim::study {
namespace {

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

/// Puts segments into the stage of data parallelism: those of groups of one shape and split are of one family, so that
/// each collective of a family has one algorithm. Each group is of one family.
class GroupFamilies {
 public:
  GroupFamilies(hccl::StageProgram& stage, sim::Cluster& cluster) : stage_(stage), cluster_(cluster) {}

  void add(const hccl::Communicator& group, std::vector<hccl::Segment> segments) {
    const hccl::Topology shape = topology_of(group, cluster_);
    for (const Known& one : known_) {
      if (one.shape != shape || one.segments != segments) continue;
      stage_.families[one.family].push_back(group.ranks);
      return;
    }
    const auto family = static_cast<std::uint32_t>(stage_.families.size());
    stage_.families.push_back({group.ranks});
    for (const hccl::Reduction& reduction : hccl::reductions_of(segments, family)) {
      stage_.reductions.push_back(reduction);
    }
    known_.push_back({shape, std::move(segments), family});
  }

 private:
  struct Known {
    hccl::Topology shape;
    std::vector<hccl::Segment> segments;
    std::uint32_t family = 0;
  };
  hccl::StageProgram& stage_;
  sim::Cluster& cluster_;
  std::vector<Known> known_;
};

void name_fusion(const std::optional<hccl::FusionRule>& rule, LoadedRun& run) {
  if (!rule.has_value()) return;
  run.fusion = to_string(*rule);
  const bool of_option = run.spec.fusion_index.has_value() && rule->mode == hccl::FusionMode::index;
  run.gradient_rule = of_option ? fmt::format("by parameter {}", fmt::join(rule->last, ",")) : "fusion " + run.fusion;
}

std::vector<hccl::Segment> fuse(const hccl::FusionRule& rule, models::Program& loaded, LoadedRun& run) {
  run.by_parameter = true;
  number_gradients_by_parameter(loaded);
  const hccl::FusedGradients fused =
      fuse_gradients(rule, loaded.gradient_sizes(), size_of(loaded.gradient_type()), run.notes);
  renumber_gradients(loaded, fused.order);
  run.runs_of_parameters = std::ranges::is_sorted(fused.order);
  return fused.segments;
}

std::vector<hccl::Segment> fuse_types_apart(const std::optional<hccl::FusionRule>& rule, models::Program& loaded,
                                            LoadedRun& run) {
  if (!rule.has_value()) {
    bad_input("option",
              "gradient_fp32_sync False gives gradients of several types, which a split by HCCL does not keep apart: "
              "leave out --split and its lists, or give --fusion");
  }
  run.by_parameter = true;
  const hccl::StageProgram fused = hccl::fuse_communication(std::move(loaded), {.allreduce = *rule});
  loaded = *fused.program;
  std::vector<hccl::Segment> segments;
  for (const hccl::Reduction& reduction : fused.reductions) segments.push_back(reduction.segment);
  return segments;
}

void add_split_notes(std::size_t segments, LoadedRun& run) {
  if (run.spec.split_by_size.has_value() && segments < run.spec.split_by_size->size()) {
    run.notes.push_back(
        fmt::format("split by size: {} percentages make {} segments, as HCCL stops where a segment ends with the last "
                    "gradient",
                    run.spec.split_by_size->size(), segments));
  }
  if (run.spec.split_by_size.has_value() && run.spec.split_by_idx.has_value()) {
    run.notes.emplace_back("--split-by-idx has no effect: a split by size counts before one by index");
  }
}

void split_gradients(const std::vector<hccl::Segment>& fused, LoadedRun& run) {
  std::vector<hccl::Communicator> groups = run.spec.step.groups;
  hccl::require_groups(groups, run.npus);
  const auto is_split_group = [&](const hccl::Communicator& group) { return group.name == run.spec.split_group; };
  if (groups.empty()) {
    groups.push_back(hccl::world_communicator(run.npus));
    if (!run.table_group.empty() && run.spec.split_group == run.table_group) groups.front().name = run.table_group;
  }
  if (!run.spec.split_group.empty() && std::none_of(groups.begin(), groups.end(), is_split_group)) {
    std::vector<std::string_view> names;
    for (const hccl::Communicator& group : groups) names.push_back(group.name);
    bad_input("group", "--split-group {}: gradients are reduced in no group of this name; accepted: {}",
              run.spec.split_group, fmt::join(names, ", "));
  }
  const std::vector<Rank> alone = hccl::ranks_in_none(groups, run.npus);
  for (const Rank rank : alone) groups.push_back({fmt::format("rank {} alone", rank), {rank}});
  if (!alone.empty()) {
    run.notes.push_back(
        fmt::format("{} of {} NPUs are in no group, the first is rank {}: nobody reduces gradients with them",
                    alone.size(), run.npus, alone.front()));
  }
  hccl::StageProgram& stage = run.training.stages.front();
  GroupFamilies families(stage, run.cluster);
  for (const hccl::Communicator& group : groups) {
    const hccl::SplitStrategies strategies = run.spec.split_strategies(group, run.npus);
    std::vector<hccl::Segment> segments = !fused.empty() ? fused : strategies.resolve(group.name, run.gradient_sizes);
    if (std::ranges::find(group.ranks, run.training.simulation.rank) != group.ranks.end()) {
      run.notes.insert(run.notes.end(), strategies.notes().begin(), strategies.notes().end());
    }
    if (run.spec.step.groups.empty()) {
      stage.reductions = hccl::reductions_of(segments);
    } else {
      families.add(group, std::move(segments));
    }
    if (group.ranks.size() > 1 || run.npus == 1) run.note_group(group.ranks);
  }
  if (!run.spec.step.groups.empty()) run.training.step.groups = std::move(groups);
  if (run.spec.split_group.empty() || run.training.replicas().name == run.spec.split_group) {
    add_split_notes(run.training.segments().size(), run);
  }
}

void segment_data_parallel(models::Program loaded, LoadedRun& run) {
  const std::optional<hccl::FusionRule> rule = rule_of_gradients(run.spec, loaded, run.notes);
  name_fusion(rule, run);
  const models::Program* const whole = &loaded;
  note_communication_types(run.spec, {&whole, 1}, run.notes);
  std::vector<hccl::Segment> fused;
  if (loaded.has_several_gradient_types()) {
    fused = fuse_types_apart(rule, loaded, run);
  } else if (rule.has_value()) {
    fused = fuse(*rule, loaded, run);
  }
  if (run.spec.step.framework == Framework::mindspore) order_updates_by_parameter(loaded);
  run.gradient_sizes = loaded.gradient_sizes();
  run.training.stages.push_back({.program = std::make_shared<models::Program>(std::move(loaded)), .reductions = {}});
  if (!run.graphs.empty()) run.training.stages.front().families = run.graphs.front().families;
  split_gradients(fused, run);
}

void import_profile_of_stages(LoadedRun& run) {
  for (const std::string& path : run.spec.profiles) {
    if (!std::filesystem::exists(path)) bad_input("profile", "cannot read {}: No such file or directory", path);
  }
  if (run.spec.profiles.size() > 1 || !is_profile_folder(run.spec.profiles.front())) {
    bad_input("option",
              "--profile {}: in stages, or where ranks share parameters or operators, it takes the folder of a "
              "cluster's profile (--profile-output), with files of a rank of every stage",
              run.spec.profiles.front());
  }
  std::vector<models::Program> programs;
  for (const hccl::StageProgram& stage : run.training.stages) programs.push_back(*stage.program);
  std::vector<ImportedStage> imported;
  for (std::size_t i = 0; i < programs.size(); ++i) imported.push_back({run.graphs[i].graph, programs[i]});
  import_stages(run.spec.profiles.front(), imported, run.training.step.stage_ranks(), run.batch.micro_batches,
                run.spec.simulation.rank, run.profile.emplace());
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (run.spec.step.host_launch.has_value()) leave_out_idle_time(programs[i]);
    run.training.stages[i].program = std::make_shared<models::Program>(std::move(programs[i]));
  }
}

/// O4.13 of MindSpore's data_parallel mode: the optimizer is one that can be dealt, and every rank has parameters.
void deal_parameters(LoadedRun& run) {
  if (run.spec.step.shape.stages > 1) {
    bad_input("option", "--optimizer-parallel dealt is of data parallelism: it does not go with --stages");
  }
  require_dealt_optimizer("--optimizer-parallel dealt", run.spec.optimizer);
  const std::size_t parameters = run.graphs.front().graph.parameters.size();
  if (parameters < run.npus) {
    bad_input("runtime-error", "--optimizer-parallel dealt: {} parameters cannot be dealt to {} NPUs", parameters,
              run.npus);
  }
  run.training.step.dealt = run.spec.precision.weight;
}

/// Those of the last stage, as a device has them.
void share_results(LoadedRun& run) {
  hccl::StageProgram& last = run.training.stages.back();
  last.result_type = run.spec.fp32_sums ? DataType::fp32 : run.spec.precision.compute;
  for (const models::Tensor& result : models::results_of(run.graphs.back().graph)) {
    last.results.push_back(result.shape.elements() * run.batch.micro_batches);
  }
}

void segment_stages(LoweredStages& lowered, LoadedRun& run) {
  note_idle_ids(lowered.graphs, run.spec.parallel, run.notes);
  if (run.spec.step.framework == Framework::mindspore) {
    for (models::Program& stage : lowered.programs) order_updates_by_parameter(stage);
  }
  judge_norms(run.spec, lowered, run.notes);
  FusedStages fused =
      fuse_stages(lowered, run.spec.parallel, run.training.step.shape, run.soc, run.program_options(), run.notes);
  run.training.stages = std::move(fused.programs);
  if (!run.spec.profiles.empty()) import_profile_of_stages(run);
  const bool dealt = run.spec.parallel.optimizer.kind == hccl::OptimizerParallelKind::dealt;
  run.fusion = dealt ? to_string(fused.fusion.allreduce) : to_string(fused.fusion);
  if (run.spec.parallel.fusion.has_value() || !run.spec.parallel.fusion_ids.empty()) {
    run.gradient_rule = fmt::format("fusion {}", to_string(fused.fusion.allreduce));
  }
  if (dealt) deal_parameters(run);
  if (run.spec.step.shape.forward_only && run.spec.parallel.result_broadcast) share_results(run);
  std::vector<const models::Program*> programs;
  for (const hccl::StageProgram& one : run.training.stages) programs.push_back(one.program.get());
  note_communication_types(run.spec, programs, run.notes);
}

}  // namespace

void segment(LoweredStages lowered, LoadedRun& run) {
  if (run.data_parallel) {
    segment_data_parallel(std::move(lowered.programs.front()), run);
  } else {
    segment_stages(lowered, run);
  }
  run.program = run.training.program();
  run.gradient_sizes = run.program->gradient_sizes();
  const auto reduces_whole = [](const hccl::StageProgram& stage) {
    return std::ranges::any_of(stage.reductions, [](const hccl::Reduction& reduction) { return !reduction.scattered; });
  };
  if (run.spec.step.pad_segments && std::ranges::none_of(run.training.stages, reduces_whole)) {
    run.notes.emplace_back("--pad-segments has no effect: no gradients are reduced by an allreduce");
  }
}

}  // namespace hcclsim::study
