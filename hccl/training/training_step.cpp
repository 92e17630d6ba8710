#include "hccl/training/training_step.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace hcclsim::hccl {
namespace {

/// The group of a family in which a device is; null: in none.
const std::vector<Rank>* group_of(const DeviceGroups& family, Rank device) {
  const auto group = std::ranges::find_if(
      family, [device](const std::vector<Rank>& ranks) { return std::ranges::find(ranks, device) != ranks.end(); });
  return group == family.end() ? nullptr : &*group;
}

std::uint64_t elements_of(const Segment& segment, const models::Program& program) {
  std::uint64_t elements = 0;
  for (std::uint32_t g = segment.first; g <= segment.last; ++g) elements += program.gradients[g].elements;
  return elements;
}

/// The group of devices with which a device of the stage reduces most of its gradients; null: all devices of the stage.
const std::vector<Rank>* most_reduced(const StageProgram& stage, Rank device) {
  if (stage.families.empty()) return nullptr;
  std::vector<std::uint64_t> elements(stage.families.size(), 0);
  for (const Reduction& reduction : stage.reductions) {
    elements[reduction.copies] += elements_of(reduction.segment, *stage.program);
  }
  const std::vector<Rank>* most = nullptr;
  std::uint64_t most_elements = 0;
  for (std::size_t family = 0; family < elements.size(); ++family) {
    if (elements[family] <= most_elements) continue;
    const std::vector<Rank>* group = group_of(stage.families[family], device);
    if (group == nullptr) continue;
    most = group;
    most_elements = elements[family];
  }
  return most;
}

}  // namespace

std::vector<Segment> TrainingStep::segments() const {
  const StageProgram& own = stage();
  const Rank device = simulation.rank % step.stage_ranks();
  std::vector<bool> takes_part;  // in reductions over each family
  for (const DeviceGroups& family : own.families) takes_part.push_back(group_of(family, device) != nullptr);
  std::vector<Segment> segments;
  for (const Reduction& reduction : own.reductions) {
    if (takes_part.empty() || takes_part[reduction.copies]) segments.push_back(reduction.segment);
  }
  return segments;
}

Communicator TrainingStep::replicas() const {
  Communicator replicas = world_communicator(step.stage_ranks());
  if (const std::vector<Rank>* copies = most_reduced(stage(), simulation.rank % step.stage_ranks())) {
    replicas.ranks = *copies;
  }
  for (Rank& member : replicas.ranks) member += simulation.rank / step.stage_ranks() * step.stage_ranks();
  const auto named = std::ranges::find(step.groups, replicas.ranks, &Communicator::ranks);
  if (named != step.groups.end()) replicas.name = named->name;
  return replicas;
}

Rank TrainingStep::replica_count() const {
  return stage().families.empty() ? step.stage_ranks() : static_cast<Rank>(replicas().ranks.size());
}

CollectiveRequest TrainingStep::allreduce_request(std::uint64_t elements, DataType type) const {
  return step.request_of({.ranks = replica_count(), .elements = elements, .type = type});
}

Bytes TrainingStep::result_bytes() const {
  if (step.shape.stages == 1) return 0;
  const StageProgram& last = stages.back();
  return std::accumulate(last.results.begin(), last.results.end(), std::uint64_t{0}) * size_of(last.result_type);
}

Seconds pipeline_start(const TrainingStep& training, Rank rank) {
  const device::Skew& skew = training.simulation.skew;
  Seconds start = skew.start(rank);
  for (Rank other = 0; training.step.shape.stages > 1 && other < training.step.npus; ++other) {
    start = std::min(start, skew.start(other));
  }
  return start;
}

}  // namespace hcclsim::hccl
