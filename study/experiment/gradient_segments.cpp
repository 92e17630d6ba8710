#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/comm/groups.hpp"
#include "hccl/parallel/segments/fusion_index.hpp"
#include "study/experiment/experiment.hpp"

/// Which gradients of an Experiment travel together: fused as MindSpore does, or split as HCCL does.
namespace hcclsim::study {

namespace {

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

}  // namespace

void Experiment::name_fusion(const RunSpec& spec, const std::optional<hccl::FusionRule>& rule) {
  if (!rule.has_value()) return;
  fusion = to_string(*rule);
  const bool of_option = spec.fusion_index.has_value() && rule->mode == hccl::FusionMode::index;
  gradient_rule = of_option ? fmt::format("by parameter {}", fmt::join(rule->last, ",")) : "fusion " + fusion;
}

std::vector<hccl::Segment> Experiment::fuse(const hccl::FusionRule& rule, models::Program& loaded) {
  by_parameter = true;
  number_gradients_by_parameter(loaded);
  const hccl::FusedGradients fused =
      fuse_gradients(rule, loaded.gradient_sizes(), size_of(loaded.gradient_type()), notes);
  renumber_gradients(loaded, fused.order);
  runs_of_parameters = std::ranges::is_sorted(fused.order);
  return fused.segments;
}

std::vector<hccl::Segment> Experiment::fuse_types_apart(const std::optional<hccl::FusionRule>& rule,
                                                        models::Program& loaded) {
  if (!rule.has_value()) {
    bad_input("option",
              "gradient_fp32_sync False gives gradients of several types, which a split by HCCL does not keep apart: "
              "leave out --split and its lists, or give --fusion");
  }
  by_parameter = true;
  const hccl::StageProgram fused = hccl::fuse_communication(std::move(loaded), {.allreduce = *rule});
  loaded = *fused.program;
  std::vector<hccl::Segment> segments;
  for (const hccl::Reduction& reduction : fused.reductions) segments.push_back(reduction.segment);
  return segments;
}

/// Of buckets that are the segments of the gradients.
void Experiment::add_compression() {
  const auto has_several_types = [](const hccl::StageProgram& stage) {
    return stage.program->has_several_gradient_types();
  };
  if (std::ranges::any_of(training.stages, has_several_types)) {
    bad_input("unsupported",
              "--compress is for gradients of one type; gradient_fp32_sync False gives several: leave out one of them");
  }
  const hccl::CompressionSettings& settings = training.step.compression->settings;
  const std::vector<std::string> unused = notes_on(settings);
  notes.insert(notes.end(), unused.begin(), unused.end());
  hccl::TrainingStep of_stage = training;
  const Rank own = training.simulation.rank % training.step.stage_ranks();
  for (std::uint32_t stage = 0; stage < training.stages.size(); ++stage) {
    of_stage.simulation.rank = stage * training.step.stage_ranks() + own;
    hbm_of_stages[stage].compression =
        compression_memory(settings, *of_stage.program(), of_stage.segments(), of_stage.replica_count()).total();
  }
}

void Experiment::split_gradients(const RunSpec& spec, const std::vector<hccl::Segment>& fused) {
  std::vector<hccl::Communicator> groups = spec.step.groups;
  hccl::require_groups(groups, npus);
  const auto is_split_group = [&](const hccl::Communicator& group) { return group.name == spec.split_group; };
  if (groups.empty()) {
    groups.push_back(hccl::world_communicator(npus));
    if (!table_group.empty() && spec.split_group == table_group) groups.front().name = table_group;
  }
  if (!spec.split_group.empty() && std::none_of(groups.begin(), groups.end(), is_split_group)) {
    std::vector<std::string_view> names;
    for (const hccl::Communicator& group : groups) names.push_back(group.name);
    bad_input("group", "--split-group {}: gradients are reduced in no group of this name; accepted: {}",
              spec.split_group, fmt::join(names, ", "));
  }
  const std::vector<Rank> alone = hccl::ranks_in_none(groups, npus);
  for (const Rank rank : alone) groups.push_back({fmt::format("rank {} alone", rank), {rank}});
  if (!alone.empty()) {
    notes.push_back(
        fmt::format("{} of {} NPUs are in no group, the first is rank {}: nobody reduces gradients with them",
                    alone.size(), npus, alone.front()));
  }
  hccl::StageProgram& stage = training.stages.front();
  GroupFamilies families(stage, cluster);
  for (const hccl::Communicator& group : groups) {
    const hccl::SplitStrategies strategies = spec.split_strategies(group, npus);
    std::vector<hccl::Segment> segments = !fused.empty() ? fused : strategies.resolve(group.name, gradient_sizes);
    if (std::ranges::find(group.ranks, training.simulation.rank) != group.ranks.end()) {
      notes.insert(notes.end(), strategies.notes().begin(), strategies.notes().end());
    }
    if (spec.step.groups.empty()) {
      stage.reductions = hccl::reductions_of(segments);
    } else {
      families.add(group, std::move(segments));
    }
    if (group.ranks.size() > 1 || npus == 1) note_group(group.ranks);
  }
  if (!spec.step.groups.empty()) training.step.groups = std::move(groups);
  if (spec.split_group.empty() || training.replicas().name == spec.split_group) {
    add_split_notes(spec, training.segments().size());
  }
}

void Experiment::add_split_notes(const RunSpec& spec, std::size_t segments) {
  if (spec.split_by_size.has_value() && segments < spec.split_by_size->size()) {
    notes.push_back(
        fmt::format("split by size: {} percentages make {} segments, as HCCL stops where a segment ends with the last "
                    "gradient",
                    spec.split_by_size->size(), segments));
  }
  if (spec.split_by_size.has_value() && spec.split_by_idx.has_value()) {
    notes.emplace_back("--split-by-idx has no effect: a split by size counts before one by index");
  }
}

}  // namespace hcclsim::study
