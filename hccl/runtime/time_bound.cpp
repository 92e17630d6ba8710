#include "hccl/runtime/time_bound.hpp"

#include <algorithm>
#include <set>

#include "hccl/runtime/bandwidth.hpp"

namespace hcclsim::hccl {
namespace {

/// Ranks on the server of the communicator's first one: the rest of a cluster is made of such servers.
std::vector<Rank> ranks_of_first_server(const Communicator& communicator, const sim::Cluster& cluster) {
  std::vector<Rank> ranks;
  for (const Rank npu : communicator.ranks) {
    if (cluster.npu(npu).server == cluster.npu(communicator.ranks.front()).server) ranks.push_back(npu);
  }
  return ranks;
}

/// What leaves an NPU towards the others of the communicator at the same time.
BytesPerSecond egress(Rank npu, const Communicator& communicator, sim::Cluster& cluster) {
  std::set<sim::LinkId> first_links;
  for (const Rank other : communicator.ranks) {
    if (other != npu) first_links.insert(cluster.route(npu, other).links.front());
  }
  BytesPerSecond sum = 0;
  for (const sim::LinkId link : first_links) sum += cluster.capacity(link);
  return sum;
}

}  // namespace

Seconds time_bound(const Operation& operation, const Communicator& communicator, sim::Cluster& cluster) {
  if (operation.ranks < 2) return 0;
  BytesPerSecond most = 0;
  for (const Rank npu : ranks_of_first_server(communicator, cluster)) {
    most = std::max(most, egress(npu, communicator, cluster));
  }
  return bandwidth_of(operation, 1).busbw / most;
}

}  // namespace hcclsim::hccl
