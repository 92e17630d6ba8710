#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "hccl/comm/communicator.hpp"
#include "hccl/training/training.hpp"

namespace hcclsim::hccl {
namespace {

/// Of the groups of devices among which the stage of the rank reduces gradients, the rank's one for most of them; null:
/// all devices of the stage.
const std::vector<Rank>* most_reduced(const TrainingOptions& options) {
  if (options.stages.empty()) return nullptr;
  const StageProgram& stage = options.stages[options.rank / options.stage_ranks()];
  if (stage.families.empty()) return nullptr;
  std::vector<std::uint64_t> elements(stage.families.size(), 0);
  for (const Reduction& reduction : stage.reductions) {
    for (std::uint32_t g = reduction.segment.first; g <= reduction.segment.last; ++g) {
      elements[reduction.copies] += stage.program->gradients[g].elements;
    }
  }
  const auto most = static_cast<std::size_t>(std::ranges::max_element(elements) - elements.begin());
  const Rank device = options.rank % options.stage_ranks();
  const auto group = std::ranges::find_if(stage.families[most], [device](const std::vector<Rank>& ranks) {
    return std::ranges::find(ranks, device) != ranks.end();
  });
  return group == stage.families[most].end() ? nullptr : &*group;
}

}  // namespace

Communicator TrainingOptions::replicas() const {
  for (const ReplicaGroup& group : groups) {
    if (std::find(group.ranks.ranks.begin(), group.ranks.ranks.end(), rank) != group.ranks.ranks.end()) {
      return group.ranks;
    }
  }
  Communicator stage = world_communicator(stage_ranks());
  const Rank first = rank / stage_ranks() * stage_ranks();
  if (const std::vector<Rank>* copies = most_reduced(*this)) stage.ranks = *copies;
  for (Rank& member : stage.ranks) member += first;
  return stage;
}

Bytes TrainingOptions::result_bytes() const {
  if (shape.stages == 1) return 0;
  return std::accumulate(results.begin(), results.end(), std::uint64_t{0}) * size_of(result_type);
}

Rank TrainingOptions::replica_count() const {
  return stages.empty() && groups.empty() ? npus : static_cast<Rank>(replicas().ranks.size());
}

CollectiveRequest TrainingOptions::allreduce_request(std::uint64_t elements, DataType type) const {
  return {.operation = {.ranks = replica_count(), .elements = elements, .type = type},
          .algorithm = allreduce,
          .launch = launch,
          .config = config,
          .levels = levels};
}

Seconds pipeline_start(const TrainingOptions& options, Rank rank) {
  Seconds start = options.skew.start(rank);
  for (Rank other = 0; options.shape.stages > 1 && other < options.npus; ++other) {
    start = std::min(start, options.skew.start(other));
  }
  return start;
}

}  // namespace hcclsim::hccl
