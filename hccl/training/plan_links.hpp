#pragma once

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/runtime/private_links.hpp"
#include "sim/cluster.hpp"
#include "sim/cpu_hosts.hpp"

namespace hcclsim::hccl {

/// The links that are private while a Plan is carried out, with copies from `cpus` (null: there are none), by the ranks
/// that stand for others if there are any
/// (`orbits` not null; of groups that do the same, that of `own` is there).
[[nodiscard]] PrivateLinks private_links_of(sim::Cluster& cluster, sim::CpuHosts* cpus, const Plan& plan,
                                            const RankOrbits* orbits, Rank own);

}  // namespace hcclsim::hccl
