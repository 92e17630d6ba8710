#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/shared_work.hpp"
#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/runtime/collective/collective_run.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/settings/launch_mode.hpp"
#include "sim/cluster.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/link_utilisation.hpp"
#include "sim/network/network.hpp"
#include "sim/trace.hpp"

/// Times collectives outside of a training step: alone, back to back or several at once.
///
/// Each rank has a host that issues its calls in their order, and again for every iteration. To issue a call keeps the
/// host busy for a time that depends on the mode (issue.hpp); it runs ahead of the device, so call k can start on the
/// device at
///
///     h(k) = max(h(k−1), start of the call) + issue         issued by the host
///     s(k) = max(h(k), end of the call before it on its stream)
///
/// and calls back to back cost max(time on the device, issue) each. Where tasks start as they are issued, a call starts
/// earlier, and its tasks wait for the host. Calls of one stream run one after the other on each rank, without waiting
/// for other ranks; different streams run at the same time and share the links.
///
/// Iterations of a single call are all equal if all ranks take as long to issue it, as a whole, and the first one ends
/// on all ranks at the same date: then each later one begins like the first, with all ranks at once and nothing on the
/// links. Only the first is simulated then, and the formulas above give the rest; not if faults happen.
namespace hcclsim::hccl {

struct CollectiveCall {
  std::string name;  ///< in the trace and in messages
  std::shared_ptr<const Schedule> schedule;
  std::vector<Rank> ranks{};  ///< the NPU of each rank; empty: the first schedule->ranks of the cluster
  Seconds start = 0;          ///< the host does not issue it before
  std::uint32_t stream = 0;
};

struct SimulateOptions {
  sim::NetworkKind network = sim::NetworkKind::fluid;
  LaunchMode launch = LaunchMode::graph;
  std::uint32_t iterations = 1;                                     ///< timed
  std::uint32_t warmups = 0;                                        ///< iterations before them
  bool trace = false;                                               ///< the result's trace has the tasks of all ranks
  Seconds exec_timeout = std::numeric_limits<Seconds>::infinity();  ///< as in Machine
  bool fold = false;                               ///< of ranks that do the same one is simulated (rank_orbits.hpp)
  std::shared_ptr<const sim::FaultPlan> faults{};  ///< null: none
  std::shared_ptr<SharedWork> work{};  ///< of simulate_each(): its points are counted there; null: nobody asks
  bool record_flows = false;           ///< the result has the transfers of the first iteration
};

/// A call in the last iteration that was simulated.
struct CollectiveTime {
  Seconds start = 0;          ///< its first rank begins on the device
  Seconds end = 0;            ///< its last rank has ended
  Seconds duration = 0;       ///< of its slowest rank, waiting for others included
  Seconds per_iteration = 0;  ///< mean of the timed iterations of its stream, their issue included, on the slowest rank
  Seconds issue = 0;          ///< of the host that is busy longest with it
  CollectiveStats stats;
};

struct SimulatedCollectives {
  std::vector<CollectiveTime> calls;     ///< as they were given
  Seconds makespan = 0;                  ///< end of the last iteration; the first host begins at 0
  std::uint32_t simulated = 0;           ///< iterations; 1 also where the others are proved equal to it
  std::uint64_t transfers = 0;           ///< in these iterations, all completed
  std::vector<std::string> idle_faults;  ///< of links over which no bytes go
  std::vector<FoldedClass> folded;       ///< of the ranks that take part; empty: all were simulated
  std::vector<sim::Flow> flows;          ///< of the ranks that were simulated; empty unless asked for
  std::optional<RankOrbits> orbits;      ///< with these flows, if some ranks stand for all
  sim::Trace trace;
};

/// One simulation. With the network `fluid` any number of them can follow each other in a process; with `simgrid` only
/// one, so run it in a child (base/child_process.hpp). Throws Error(bad_input, "collective") for a schedule with more
/// ranks than the cluster and NPUs that do not fit its ranks, Error(simulated_failure) if it does not come to an end.
[[nodiscard]] SimulatedCollectives simulate_collectives(sim::Cluster& cluster, const device::Soc& soc,
                                                        const device::TaskCosts& costs, const SimulateOptions& options,
                                                        const std::vector<CollectiveCall>& calls);

}  // namespace hcclsim::hccl
