#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/runtime/private_links.hpp"
#include "sim/cluster.hpp"
#include "sim/cpu_hosts.hpp"
#include "sim/event_loop.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/link_utilisation.hpp"
#include "sim/network/network.hpp"
#include "sim/trace.hpp"

/// What a simulation gives to all that happens in it.
namespace hcclsim::hccl {

class SharedNpus;

/// Takes what links carry in one training iteration, while it is simulated: bytes as they load the links' capacity.
struct CarriedBytes {
  std::int32_t iteration = 0;
  std::vector<double> of_links{};  ///< by LinkId

  /// A write over a route.
  void add(const sim::TaskId& id, const sim::Route& way, Bytes bytes) {
    if (id.iteration != iteration) return;
    for (const sim::LinkId link : way.links) of_links[link] += static_cast<double>(bytes) * way.write_factor;
  }
};

/// What a simulation gives to its collectives; must outlive them.
struct Machine {
  sim::EventLoop& loop;
  sim::Network& network;
  sim::Cluster& cluster;
  const device::TaskCosts& costs;
  const device::Soc& soc;  ///< of every NPU: copies within it, and what its transfers can reduce
  sim::Trace& trace;
  Seconds exec_timeout = std::numeric_limits<Seconds>::infinity();  ///< longest wait for a notify (HCCL_EXEC_TIMEOUT)
  sim::FlowLog* flows = nullptr;                                    ///< null: nobody asks for them
  const RankOrbits* orbits = nullptr;                               ///< null: every rank is simulated
  /// Of the links, if it is known beforehand what all streams do and capacities stay what they are; null: none.
  const PrivateLinks* private_links = nullptr;
  sim::CpuHosts* cpus = nullptr;    ///< between which and NPUs bytes are copied; null: the platform has none
  std::string_view job{};           ///< of several on one clock: its name, for messages
  CarriedBytes* carried = nullptr;  ///< null: nobody asks for it
  bool moves_all = true;  ///< the network moves what goes over private links, too: with events, like all others
  const sim::FaultPlan* faults = nullptr;  ///< null: nothing goes wrong
  /// NPUs whose HBM and AI cores are shared; then `network` is theirs, no links are private, and nothing goes wrong.
  /// Null: they are not.
  SharedNpus* shared = nullptr;
};

/// The tasks of a rank as its host issues them: number k of them, counted from 0 in the order of the walk, does not
/// begin before `begin` + (k + 1) · `task`.
struct Pace {
  Seconds begin = 0;
  Seconds task = 0;  ///< 0: all are there
};

/// Order of a rank's events at one date: by stream, within a stream by the queues of its collective.
[[nodiscard]] constexpr sim::EventOrder event_order(Rank rank, std::uint32_t stream, std::uint32_t queue = 0) {
  constexpr std::uint32_t queues_per_stream = 4096;
  return {rank, stream * queues_per_stream + queue};
}

}  // namespace hcclsim::hccl
