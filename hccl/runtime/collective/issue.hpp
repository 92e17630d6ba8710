#pragma once

#include "base/units.hpp"
#include "device/task_cost.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/settings/launch_mode.hpp"

/// How the host of a rank issues a collective. In graph mode the tasks are on the device already, and a launch is all.
/// In op mode the host expands the collective into the rank's tasks and issues them in their order, stage by stage and
/// queue by queue, and a later collective after those before.
namespace hcclsim::hccl {

struct Issue {
  Seconds call = 0;             ///< before the first task
  Seconds task = 0;             ///< for each task, if a task starts when it is issued; else 0
  Seconds together = 0;         ///< for all tasks, if all start when the last one is issued
  Seconds behind_the_call = 0;  ///< for all tasks, if a task starts when it is issued: the host goes on then

  /// From the call until the device may begin.
  [[nodiscard]] Seconds until_start() const { return call + together; }
  /// The host is busy so long.
  [[nodiscard]] Seconds total() const { return call + together + behind_the_call; }

  bool operator==(const Issue&) const = default;
};

/// Of a rank of the schedule.
[[nodiscard]] Issue issue_of(const device::TaskCosts& costs, LaunchMode mode, const Schedule& schedule, Rank rank);

}  // namespace hcclsim::hccl
