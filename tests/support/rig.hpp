#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hccl/runtime/runtime.hpp"

/// A runtime on a platform file with all that it needs, for tests that drive it themselves.
namespace hcclsim::test {

class Rig {
 public:
  Rig(const std::string& platform, sim::NetworkKind kind)
      : cluster(platform), network(sim::make_network(kind, cluster, loop)), costs(read_costs(cluster)) {}

  sim::Cluster cluster;
  sim::EventLoop loop;
  std::unique_ptr<sim::Network> network;
  device::TaskCosts costs;
  sim::Trace trace;
  device::Soc soc = soc_that_reduces_anything();
  hccl::Machine machine{loop, *network, cluster, costs, soc, trace};
  hccl::Runtime runtime{machine};

  /// Date at which the slowest of all ranks has ended one run of the schedule, called by all at date 0.
  double time_of(std::shared_ptr<const hccl::Schedule> schedule) {
    const hccl::CommunicatorId world = runtime.create_communicator(hccl::world_communicator(schedule->ranks));
    for (Rank rank = 0; rank < schedule->ranks; ++rank) {
      runtime.collective(runtime.create_stream(rank), world, schedule, trace.intern("collective"));
    }
    runtime.run();
    return runtime.collectives().back().last_end;
  }

 private:
  /// On the way, so that times are those of links.
  static device::Soc soc_that_reduces_anything() {
    device::Soc soc;
    soc.hbm_bandwidth = 1e12;
    soc.inline_reduce = {.types = 0xFFFF, .ops = 0xFF, .alignment = 1, .over_rdma = true};
    return soc;
  }
  static device::TaskCosts read_costs(const sim::Cluster& cluster) {
    std::vector<std::string> notes;
    return device::read_task_costs(cluster, notes);
  }
};

}  // namespace hcclsim::test
