#include "study/spec/run_spec.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/names.hpp"
#include "hccl/parallel/pipeline/stage_graphs.hpp"

namespace hcclsim::study {

void RunSpec::require_ranks(Rank npus) const {
  if (npus % step.shape.stages != 0) {
    bad_input("pipeline", "{} NPUs cannot be shared evenly by {} stages (--stages); accepted: {}", npus,
              step.shape.stages, fmt::join(hccl::divisors_of(npus), ", "));
  }
  const char* const of_stage = step.shape.stages > 1 ? " of a stage" : "";
  if (devices(npus) % parallel.operators.model != 0) {
    bad_input("option", "--model-parallel {}: so many cannot share the {} NPUs{} evenly; accepted: {}",
              parallel.operators.model, devices(npus), of_stage, fmt::join(hccl::divisors_of(devices(npus)), ", "));
  }
  if (devices(npus) / parallel.operators.model % parallel.operators.context != 0) {
    bad_input("option",
              "--context-parallel {}: so many cannot share the {} NPUs, or groups of them,{} evenly; accepted: {}",
              parallel.operators.context, devices(npus) / parallel.operators.model, of_stage,
              fmt::join(hccl::divisors_of(devices(npus) / parallel.operators.model), ", "));
  }
  if (parallel.operators.data.value_or(replicas(npus)) == replicas(npus)) return;
  bad_input("option", "--data-parallel {}: {} NPUs = {} x {} that share operators x {} with samples of their own",
            *parallel.operators.data, npus, counted(step.shape.stages, "stage"), parallel.operators.sharing(),
            replicas(npus));
}

models::GradientChecks RunSpec::gradient_checks() const {
  return {.overflow = loss_scale.checks_overflow(), .global_norm = clip_norm.has_value()};
}

bool RunSpec::sets_split_of(Rank of) const {
  if (split_group.empty() || step.groups.empty()) return true;
  return std::any_of(step.groups.begin(), step.groups.end(), [&](const hccl::Communicator& group) {
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
