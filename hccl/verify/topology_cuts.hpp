#pragma once

#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/task_cost.hpp"
#include "hccl/check/findings.hpp"
#include "hccl/schedule/operation.hpp"
#include "sim/cluster.hpp"

/// Upper bounds of what the ranks of a communicator can do on a platform, for level L7 of the checker, and the least
/// time of a collective that follows from them.
///
/// The speed out of a group: every route that leaves it has a first, a last and a slowest link. Each of these three
/// sets of links carries all bytes that leave, so the smallest of the three sums of capacities is a bound; a link whose
/// capacity is not shared has no bound. A task may be slower than the links it uses; the bound still holds. Where tasks
/// are faster than the capacity of their links, the capacity is multiplied by the ratio.
///
/// Up to a number of ranks, all routes between all ranks are looked at. With more ranks that would take seconds. Then
/// each rank's routes to and from the others of its server are looked at, and those to one rank of a few other servers,
/// in its own super-pod and in another one; in a server of more than 256 ranks those to and from a few of its ranks.
/// The bounds then assume that its routes to all others begin and end at the same links, which is true on every
/// platform that `hcclsim platform generate` writes.
namespace hcclsim::hccl {

struct TopologyBounds {
  /// The levels: each NPU by itself; dies of one package (SIO); servers; super-pods (the unified bus, without RoCE).
  /// Levels with a single group are left out, and so are levels with the same groups as the level before.
  std::vector<CutLevel> cuts{};
  /// Set-up of the smallest transfer and the least latency of a route.
  Seconds least_step = 0;
  bool all_routes = true;  ///< were looked at
};

/// The bounds for the ranks of a communicator, given the NPU of each rank. Up to `most_ranks` ranks all routes are
/// looked at.
[[nodiscard]] TopologyBounds topology_bounds(sim::Cluster& cluster, std::span<const Rank> npus,
                                             const device::TaskCosts& costs, Rank most_ranks);

/// A lower bound of the time of every schedule of the operation: the bytes that have to cross a border at the border's
/// speed, and one step if there are any bytes. 0 for one rank.
[[nodiscard]] Seconds least_time(const Operation& operation, const TopologyBounds& bounds);

}  // namespace hcclsim::hccl
