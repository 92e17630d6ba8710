#pragma once

#include "base/units.hpp"
#include "device/task_cost.hpp"
#include "sim/cluster.hpp"
#include "sim/trace.hpp"

/// What a collective's time consists of: from its end back to its beginning, always to what the task at hand waited
/// for.
namespace hcclsim::hccl {

/// Parts of the critical path; their sum is its length.
struct CriticalPath {
  Seconds alpha = 0;    ///< set-ups, latencies, notifies, forks and joins of queues
  Seconds beta = 0;     ///< bytes, at the speed of idle links
  Seconds sharing = 0;  ///< what transfers take longer since others use the same links
  Seconds gamma = 0;    ///< reductions and copies on an NPU
};

/// Of the only collective in a trace with the tasks of all its ranks, which lasted from `start` to `end`. A wait whose
/// notify came late goes on with the post on the other rank, any other task with the one before it in its queue, the
/// first task of a stage with the last one of the rank's stage before.
[[nodiscard]] CriticalPath critical_path(const sim::Trace& trace, sim::Cluster& cluster, const device::TaskCosts& costs,
                                         Seconds start, Seconds end);

}  // namespace hcclsim::hccl
