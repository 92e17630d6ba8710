#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/check/findings.hpp"
#include "hccl/runtime/collective/path_time.hpp"
#include "hccl/runtime/simulate.hpp"
#include "hccl/schedule/schedule.hpp"
#include "sim/cluster.hpp"

/// Levels L8 and L9 of the checker: a correct schedule, simulated on a platform.
///
/// L8: its time beside the bound that L7 found, and what the time consists of. No schedule can be faster than the
/// bound; one that is ("faster-than-bound") shows that the platform or the simulation is wrong.
///
/// L9: the simulation has carried what the schedule sends. Every transfer is carried once ("transfers"); between every
/// two ranks as many bytes arrive as the schedule sends ("bytes-differ"); and the counters of the links have the bytes
/// of all routes ("links-differ").
namespace hcclsim::hccl {

struct Conservation {
  Bytes carried = 0;  ///< between NPUs, as the schedule says
  LevelReport l9{"L9"};
};

struct TimedCheck {
  Seconds time = 0;   ///< of the slowest rank
  Seconds bound = 0;  ///< Distances::least_time
  std::uint64_t transfers = 0;
  PathTime path{};
  LevelReport l8{"L8"};
  Conservation conservation;

  /// Share of the time that any schedule needs.
  [[nodiscard]] double efficiency() const { return time > 0 ? bound / time : 1; }
};

/// Compares what the schedule sends with what the simulation of one call on the first NPUs has carried; between every
/// two ranks only if its trace has all tasks.
[[nodiscard]] Conservation check_conservation(const Schedule& schedule, sim::Cluster& cluster,
                                              const SimulatedCollectives& simulated, bool traced);

/// Schedules with more tasks (task_count) are not timed: they would take minutes.
inline constexpr std::uint64_t most_timed_tasks = 100'000'000;

/// The schedule runs on the first NPUs of the cluster; in graph mode, without a launch by the host.
[[nodiscard]] TimedCheck check_timing(const std::shared_ptr<const Schedule>& schedule, const Distances& distances,
                                      sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs);

}  // namespace hcclsim::hccl
