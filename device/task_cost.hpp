#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/property.hpp"
#include "sim/cluster.hpp"

/// The fixed costs of the tasks that a collective consists of: the named parts of alpha. They are properties of the
/// platform's outermost zone. The defaults are the task times that HCCL itself uses for estimates (its
/// task_profiling.h); for the launch in op mode it is the static cost of communication in the vendor's modelling tool.
namespace hcclsim::device {

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
  // What a collective costs the host, once, before the device can start it.
  Seconds launch = 0;                    ///< `launch_us`: in graph mode, which loads the tasks in advance
  Seconds op_launch = 10 * microsecond;  ///< `op.launch_us`: in op mode

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
