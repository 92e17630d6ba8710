#include "hccl/comm/communicator.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace hcclsim::hccl {

Communicator world_communicator(Rank size) {
  Communicator world{std::string(world_group), std::vector<Rank>(size)};
  std::iota(world.ranks.begin(), world.ranks.end(), Rank{0});
  return world;
}

std::vector<Rank> Topology::server_sizes() const {
  return ranks_per_server > 0 ? std::vector<Rank>(servers, ranks_per_server) : uneven_servers;
}

Topology topology_of(const Communicator& communicator, sim::Cluster& cluster) {
  // Lengths of the runs of ranks on one server; a server that comes back makes the numbering irregular.
  std::vector<Rank> runs;
  std::set<std::uint32_t> servers;
  bool by_server = true;
  bool device_order = true;
  std::uint32_t current = 0;
  for (const Rank rank : communicator.ranks) {
    const sim::Npu& npu = cluster.npu(rank);
    if (runs.empty() || npu.server != current) {
      by_server = servers.insert(npu.server).second && by_server;
      current = npu.server;
      runs.push_back(0);
    }
    device_order = device_order && npu.device == runs.back();
    ++runs.back();
  }
  Topology topology{.ranks = static_cast<Rank>(communicator.ranks.size()),
                    .servers = static_cast<Rank>(servers.size())};
  bool inside_known = false;
  bool between_known = topology.servers < 2;
  for (std::size_t i = 1; i < communicator.ranks.size() && !(inside_known && between_known); ++i) {
    const Rank here = communicator.ranks[i - 1];
    const Rank next = communicator.ranks[i];
    const bool same = cluster.npu(here).server == cluster.npu(next).server;
    bool& known = same ? inside_known : between_known;
    if (!known) (same ? topology.inside : topology.between) = cluster.route(here, next).transport;
    known = true;
  }
  if (!by_server || runs.empty()) return topology;
  if (std::any_of(runs.begin(), runs.end(), [&](Rank run) { return run != runs.front(); })) {
    topology.uneven_servers = std::move(runs);
    return topology;
  }
  topology.ranks_per_server = runs.front();
  std::vector<Rank> devices(cluster.servers(), 0);
  for (Rank rank = 0; rank < cluster.size(); ++rank) ++devices[cluster.npu(rank).server];
  topology.whole_servers = device_order;
  for (const std::uint32_t server : servers) {
    topology.whole_servers = topology.whole_servers && devices[server] == topology.ranks_per_server;
  }
  return topology;
}

}  // namespace hcclsim::hccl
