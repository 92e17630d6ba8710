#pragma once

#include <vector>

#include "base/units.hpp"
#include "device/task_cost.hpp"
#include "hccl/check/report.hpp"
#include "sim/cluster.hpp"

/// What a platform lets the ranks of a communicator do at most, for level L7 of the checker.
namespace hcclsim::hccl {

struct TopologyBounds {
  /// Each NPU by itself; dies of one package (SIO); servers; super-pods (the unified bus, without RoCE). Only levels
  /// with more than one group, and none that has the same groups as the one before.
  std::vector<CutLevel> cuts;
  /// Set-up of the smallest transfer and the least latency of a route.
  Seconds least_step = 0;
};

/// Of the first `ranks` NPUs; they are all asked for their routes to each other.
///
/// The speed out of a group: every route that leaves it has a first, a last and a slowest link. Each of these three
/// sets of links carries all bytes that leave, so the smallest sum of their capacities is a bound; a link whose
/// capacity is not shared has no bound. A task may be slower than the links it uses, which makes the bound no less
/// true; where one is faster than their capacity, the capacity counts as often as it is.
[[nodiscard]] TopologyBounds topology_bounds(sim::Cluster& cluster, Rank ranks, const device::TaskCosts& costs);

}  // namespace hcclsim::hccl
