#pragma once

#include <optional>
#include <span>

#include "base/units.hpp"
#include "device/skew.hpp"
#include "hccl/parallel/plan.hpp"
#include "hccl/runtime/rank_orbits.hpp"
#include "sim/cluster.hpp"
#include "sim/faults/fault_plan.hpp"

namespace hcclsim::hccl {

/// Ranks of a Plan that do the same at the same dates: of one role, one start and one speed, in groups and with
/// messages that a turn of the ranks carries into each other; what faults touch, if there are any (`faults` not null),
/// is like nothing else. Nothing if kernels have jitter, of which every rank has its own.
[[nodiscard]] std::optional<RankOrbits> find_orbits(sim::Cluster& cluster, const Plan& plan, const device::Skew& skew,
                                                    const sim::FaultPlan* faults, std::span<const Rank> preferred);

}  // namespace hcclsim::hccl
