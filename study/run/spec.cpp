#include "study/run/spec.hpp"

#include <algorithm>

namespace hcclsim::study {

models::GradientChecks RunSpec::gradient_checks() const {
  return {.overflow = loss_scale.checks_overflow(), .global_norm = clip_norm.has_value()};
}

bool RunSpec::sets_split_of(Rank of) const {
  if (split_group.empty() || groups.empty()) return true;
  return std::any_of(groups.begin(), groups.end(), [&](const hccl::Communicator& group) {
    return group.name == split_group && std::binary_search(group.ranks.begin(), group.ranks.end(), of);
  });
}

hccl::SplitStrategies RunSpec::split_strategies(const hccl::Communicator& group, Rank world_size) const {
  hccl::SplitStrategies strategies(group.ranks.front(), world_size, allow_many_segments);
  strategies.set_fallback(fallback_split);
  if (group.name != hccl::world_group) strategies.create_group(group.name, group.ranks);
  if (!split_group.empty() && split_group != group.name) return strategies;
  if (split_by_size.has_value()) strategies.set_split_strategy_by_size(*split_by_size, group.name);
  if (split_by_idx.has_value()) strategies.set_split_strategy_by_idx(*split_by_idx, group.name);
  return strategies;
}

}  // namespace hcclsim::study
