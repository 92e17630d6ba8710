#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/skew.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "device/workload.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/parallel/plan.hpp"
#include "hccl/parallel/segment.hpp"
#include "hccl/runtime/bottleneck.hpp"
#include "hccl/settings/config.hpp"
#include "sim/cluster.hpp"
#include "sim/network/link_utilisation.hpp"
#include "sim/network/network.hpp"
#include "sim/trace.hpp"

/// Simulates data-parallel training and says when everything happened, as one rank sees it in the last iteration.
namespace hcclsim::hccl {

struct TrainingOptions {
  Rank npus = 1;                    ///< the first NPUs of the cluster take part
  std::vector<Segment> segments{};  ///< cover the workload's gradients
  bool hcom_parallel = false;
  Algorithm allreduce = Algorithm::automatic;
  std::vector<HierarchyLevel> levels{};  ///< of a hierarchical allreduce that is asked for; empty: HCCL's
  HcclConfig config{};
  /// graph: tasks are loaded in advance. op: collectives go through the communicator's buffer, HCCL chooses as for
  /// single operations, and the host issues each.
  LaunchMode launch = LaunchMode::graph;
  std::uint32_t iterations = 3;
  Rank rank = 0;               ///< whose figures are reported
  std::vector<Rank> traced{};  ///< ranks in the trace, besides `rank`
  bool trace_tasks = false;    ///< the trace holds the tasks inside collectives too
  bool record_flows = false;   ///< the result has the transfers of the last iteration
  sim::NetworkKind network = sim::NetworkKind::simgrid;
  device::Skew skew{};

  /// The allreduce of so many elements that these options ask for.
  [[nodiscard]] CollectiveRequest allreduce_request(std::uint64_t elements, DataType type) const;
};

struct SegmentResult {
  Segment segment;
  Bytes bytes = 0;   ///< on the wire, before the algorithm multiplies them
  double share = 0;  ///< fraction of all bytes
  std::string algorithm;
  // Seconds since fp_start of the last iteration.
  Seconds ready = 0;  ///< last gradient is there
  Seconds start = 0;
  Seconds end = 0;
  double hidden = 0;  ///< fraction of the time during which the NPU computes
  double algbw = 0;   ///< bytes / time, bytes per second
  double busbw = 0;   ///< algbw · 2(n−1)/n
  Bottleneck limit;   ///< what took most of its time
};

/// What dynamic loss scaling and clipping do between the reduction of the gradients and their update.
struct GradientCheckTimes {
  Seconds start = 0;        ///< of the first check
  Seconds end = 0;          ///< nothing keeps the updates any longer
  Seconds kernels_end = 0;  ///< of the last check, or of the kernel that makes the clip's factor
  std::string algorithm;    ///< of the allreduce of the overflow flag; empty: there is no flag
  Seconds flag_start = 0;
  Seconds flag_end = 0;
};

/// Dates are seconds since fp_start of the last iteration of the reported rank.
struct TrainingResult {
  Seconds step_time = 0;            ///< mean distance of successive iteration ends but the first
  std::vector<Seconds> step_times;  ///< the same of every rank
  Seconds fp_end = 0;               ///< the last forward kernel ends; 0 if there is none
  Seconds bp_end = 0;
  Seconds iteration_end = 0;
  Seconds compute = 0;                ///< time during which a compute or update stream is busy
  Seconds communication = 0;          ///< time during which an allreduce is under way, that of the flag too
  Seconds exposed_communication = 0;  ///< the part of it during which nothing is computed
  Seconds update = 0;                 ///< time of checks and of the optimizer's kernels after bp_end or beside it
  std::vector<SegmentResult> segments;
  std::optional<GradientCheckTimes> checks;
  std::vector<Seconds> gradient_ready;  ///< production order
  StepSchedules schedules;              ///< what was timed; real gradients move along the same
  sim::Trace trace;
  Seconds last_fp_start = 0;     ///< date of fp_start in the trace's clock
  std::vector<sim::Flow> flows;  ///< in the trace's clock, in the order of their ends; empty unless asked for
  std::uint64_t transfers = 0;   ///< all of them completed
};

/// One simulation; SimGrid allows one per process (base/child_process.hpp).
[[nodiscard]] TrainingResult simulate_training(sim::Cluster& cluster, const device::Workload& workload,
                                               const device::Soc& soc, const device::TaskCosts& costs,
                                               const TrainingOptions& options);

}  // namespace hcclsim::hccl
