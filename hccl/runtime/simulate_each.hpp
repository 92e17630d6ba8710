#pragma once

#include <vector>

#include "hccl/runtime/simulate.hpp"

/// Many simulations on one loaded cluster, none of which sees another: sizes of a sweep, schedules alone and together.
///
/// With the network `fluid` they run in this process, one after the other, and give the same bits as each alone in a
/// process of its own. SimGrid's clock cannot be set back, so with `simgrid` each runs in a child, as many at a time as
/// there are processors.
namespace hcclsim::hccl {

/// The results of simulate_collectives for each list of calls, without traces. Throws what it throws.
[[nodiscard]] std::vector<SimulatedCollectives> simulate_each(sim::Cluster& cluster, const device::Soc& soc,
                                                              const device::TaskCosts& costs,
                                                              const SimulateOptions& options,
                                                              const std::vector<std::vector<CollectiveCall>>& points);

}  // namespace hcclsim::hccl
