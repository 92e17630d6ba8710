#include "study/run/spec.hpp"

namespace hcclsim::study {

models::GradientChecks RunSpec::gradient_checks() const {
  return {.overflow = loss_scale.checks_overflow(), .global_norm = clip_norm.has_value()};
}

hccl::SplitStrategies RunSpec::split_strategies(Rank world_size) const {
  hccl::SplitStrategies strategies(0, world_size, allow_many_segments);
  strategies.set_fallback(fallback_split);
  if (split_by_size.has_value()) strategies.set_split_strategy_by_size(*split_by_size);
  if (split_by_idx.has_value()) strategies.set_split_strategy_by_idx(*split_by_idx);
  return strategies;
}

}  // namespace hcclsim::study
