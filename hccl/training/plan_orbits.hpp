#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/skew.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "sim/cluster.hpp"
#include "sim/cpu_hosts.hpp"
#include "sim/faults/fault_plan.hpp"

namespace hcclsim::hccl {

/// What ranks are by themselves, and what happens to them and to links. What is touched is like nothing else.
struct RankTraits {
  device::Skew skew{};
  std::vector<double> samples_per_second{};  ///< of the data workers of each rank; empty: all alike
  const sim::FaultPlan* faults = nullptr;    ///< null: there are none
  std::vector<bool> used_by_others{};        ///< of each link whether another job sends over it; empty: there is none
};

/// Ranks of a Plan that do the same at the same dates: of one role, one start and one speed, with data workers as fast,
/// in groups, with messages and with copies from the host (`cpus`; null: over no links) that a turn of the ranks
/// carries into each other. Nothing if kernels have jitter, of which every rank has its own.
[[nodiscard]] std::optional<RankOrbits> find_orbits(sim::Cluster& cluster, sim::CpuHosts* cpus, const Plan& plan,
                                                    const RankTraits& traits, std::span<const Rank> preferred);

}  // namespace hcclsim::hccl
