#pragma once

#include "base/units.hpp"
#include "device/task_cost.hpp"
#include "sim/cluster.hpp"
#include "sim/trace.hpp"

/// What a collective's time consists of. The path goes from its end back to its beginning, from each task to what it
/// waited for.
namespace hcclsim::hccl {

/// Parts of the critical path; their sum is its length.
struct CriticalPath {
  Seconds alpha = 0;    ///< set-ups, latencies, notifies, forks and joins of queues
  Seconds beta = 0;     ///< bytes, at the speed of idle links
  Seconds sharing = 0;  ///< additional time of transfers because others use the same links
  Seconds gamma = 0;    ///< reductions and copies on an NPU
};

/// The critical path of the only collective in a trace, which lasted from `start` to `end`; the trace must have the
/// tasks of all its ranks. A wait whose notify came late is followed back to the post on the other rank, any other task
/// to the one before it in its queue, and the first task of a stage to the last task of the rank's previous stage.
[[nodiscard]] CriticalPath critical_path(const sim::Trace& trace, sim::Cluster& cluster, const device::TaskCosts& costs,
                                         Seconds start, Seconds end);

}  // namespace hcclsim::hccl
