#pragma once

#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/task_cost.hpp"
#include "hccl/check/findings.hpp"
#include "hccl/schedule/operation.hpp"
#include "sim/cluster.hpp"

/// What a platform lets the ranks of a communicator do at most, for level L7 of the checker, and the least time of a
/// collective that follows from it.
///
/// The speed out of a group: every route that leaves it has a first, a last and a slowest link. Each of these three
/// sets of links carries all bytes that leave, so the smallest sum of their capacities is a bound; a link whose
/// capacity is not shared has no bound. A task may be slower than the links it uses, which makes the bound no less
/// true; where one is faster than their capacity, the capacity counts as often as it is.
///
/// Up to a number of ranks all are asked for their routes to all others. Of more ranks that would take seconds: each is
/// asked for those to and from the others of its server and one rank of a few other servers, in its own super-pod and
/// in another one. The bounds then suppose that its routes to all other servers begin and end at the links of these, as
/// they do on every platform that `hcclsim platform generate` writes.
namespace hcclsim::hccl {

struct TopologyBounds {
  /// Each NPU by itself; dies of one package (SIO); servers; super-pods (the unified bus, without RoCE). Only levels
  /// with more than one group, and none that has the same groups as the one before.
  std::vector<CutLevel> cuts{};
  /// Set-up of the smallest transfer and the least latency of a route.
  Seconds least_step = 0;
  bool all_routes = true;  ///< were looked at
};

/// Of the ranks of a communicator, each on its NPU; all routes of up to `most_ranks` ranks are looked at.
[[nodiscard]] TopologyBounds topology_bounds(sim::Cluster& cluster, std::span<const Rank> npus,
                                             const device::TaskCosts& costs, Rank most_ranks);

/// No schedule of the operation takes less: bytes that have to cross a border at its speed, and one step if there are
/// any. 0 for one rank.
[[nodiscard]] Seconds least_time(const Operation& operation, const TopologyBounds& bounds);

}  // namespace hcclsim::hccl
