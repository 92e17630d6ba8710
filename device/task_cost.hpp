#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/property.hpp"
#include "sim/cluster.hpp"

/// The fixed costs of the tasks that a collective consists of: the named parts of alpha. They are properties of the
/// platform's outermost zone. The defaults are the task times that HCCL itself uses for estimates (its
/// task_profiling.h); for a call in op mode it is the static cost of communication in the vendor's modelling tool.
namespace hcclsim::device {

/// What a collective costs the host of a rank in op mode, where the host expands it into tasks and issues them one
/// after the other (HCCL_OP_EXPANSION_MODE HOST).
struct HostIssue {
  Seconds base = 10 * microsecond;  ///< `op.base_us`: per call
  Seconds task = 0;                 ///< `op.task_us`: per task of the rank's schedule
  bool each_starts = false;  ///< `op.issue` task: a task may start when it is issued; whole: all when the last one is
  std::map<std::string, Seconds, std::less<>> base_of{};  ///< `op.base.NAME_us`: of a collective, in place of base

  /// Per call of the collective of that name ("allreduce", "send-recv", …).
  [[nodiscard]] Seconds base_for(std::string_view collective) const;
};

/// What a collective costs where vector cores carry it out (HCCL_OP_EXPANSION_MODE AIV): one kernel that reads and
/// writes the memory of other NPUs. No measurement is published.
struct VectorCoreCosts {
  Seconds launch = 2 * microsecond;  ///< `aiv.launch_us`: per call, on the host; the modelling tool's vector operator
  Seconds access = 1 * microsecond;  ///< `aiv.access_us`: until the first byte, or a flag, of another NPU is there
};

struct TaskCosts {
  Seconds notify_record = 1 * microsecond;          ///< `notify.record_us`: posting to another NPU
  Seconds notify_record_local = 0.5 * microsecond;  ///< `notify.record_local_us`: between queues of one NPU
  Seconds notify_wait = 0.02 * microsecond;         ///< `notify.wait_us`: a wait whose notify is there
  Seconds sdma_setup = 0.6 * microsecond;           ///< `sdma.setup_us`
  Seconds sdma_setup_large = 1.5 * microsecond;     ///< `sdma.setup_large_us`
  Bytes sdma_large = 512 * 1024;                    ///< `sdma.large_bytes`: from this size the large set-up is paid
  Seconds rdma_setup = 7 * microsecond;             ///< `rdma.setup_us`
  Seconds reduce_setup = 0.6 * microsecond;         ///< `reduce.setup_us`
  BytesPerSecond reduce_bandwidth = 10 * giga;      ///< `reduce.bandwidth`, of a reduction on the AI core
  /// `launch_us`: what a collective costs the host, once, in graph mode, which loads the tasks in advance.
  Seconds launch = 0;
  HostIssue issue;  ///< the same in op mode
  VectorCoreCosts vector_cores;

  /// What a transfer costs before its first byte flows, besides the latency of the route.
  [[nodiscard]] Seconds transfer_setup(sim::Transport transport, Bytes bytes) const;

  /// A reduction of `bytes` from scratch memory into the result on the AI core.
  [[nodiscard]] Seconds local_reduce(Bytes bytes) const;
};

/// Reads the costs; names the missing ones in `notes`. Throws Error(bad_input, "platform") that names the property.
[[nodiscard]] TaskCosts read_task_costs(const PropertyLookup& property, std::vector<std::string>& notes);

/// The same from the properties of a cluster's outermost zone.
[[nodiscard]] inline TaskCosts read_task_costs(const sim::Cluster& cluster, std::vector<std::string>& notes) {
  return read_task_costs([&cluster](std::string_view key) { return cluster.property(key); }, notes);
}

}  // namespace hcclsim::device
