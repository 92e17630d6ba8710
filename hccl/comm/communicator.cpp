#include "hccl/comm/communicator.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "device/soc.hpp"

namespace hcclsim::hccl {

std::string rank_ranges(std::span<const Rank> ranks) {
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", ranks[first]) : fmt::format("{}-{}", ranks[first], ranks[last]);
    first = last + 1;
  }
  return text;
}

Communicator world_communicator(Rank size) {
  Communicator world{std::string(world_group), std::vector<Rank>(size)};
  std::iota(world.ranks.begin(), world.ranks.end(), Rank{0});
  return world;
}

void check_members(const Communicator& communicator, Rank npus) {
  std::vector<Rank> sorted = communicator.ranks;
  std::ranges::sort(sorted);
  if (!sorted.empty() && sorted.back() >= npus) {
    bad_input("communicator", "{}: no NPU {} in a cluster of {}", communicator.name, sorted.back(), npus);
  }
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    bad_input("communicator", "{}: NPU {} takes part twice", communicator.name, *twice);
  }
}

std::vector<Rank> Topology::server_sizes() const {
  return ranks_per_server > 0 ? std::vector<Rank>(servers, ranks_per_server) : uneven_servers;
}

std::vector<Rank> Topology::super_pod_sizes() const {
  const std::vector<Rank> servers_of = server_sizes();
  std::vector<Rank> sizes;
  auto server = servers_of.begin();
  for (const Rank pod : super_pods) {
    sizes.push_back(std::accumulate(server, server + pod, Rank{0}));
    server += pod;
  }
  return sizes;
}

Rank Topology::servers_per_pod() const {
  Rank divisor = super_pods.empty() ? servers : 0;
  for (const Rank pod : super_pods) divisor = std::gcd(divisor, pod);
  return divisor;
}

Extent Topology::extent_of(std::uint64_t span) const {
  if (servers == 1 || span <= ranks_per_server) return Extent::server;
  const bool in_pod = super_pods.empty() || span <= std::uint64_t{ranks_per_server} * servers_per_pod();
  return in_pod ? Extent::super_pod : Extent::cluster;
}

sim::Transport Topology::transport_over(Extent extent) const {
  return std::array{inside, between, between_pods}[static_cast<std::size_t>(extent)];
}

namespace {

/// A communicator's ranks as runs on one server each.
struct Runs {
  std::vector<Rank> lengths;
  bool by_server = true;     ///< every server has one run only
  bool device_order = true;  ///< every run begins with device 0 and leaves no device out
};

Runs runs_of(const Communicator& communicator, const sim::Cluster& cluster) {
  Runs runs;
  std::set<std::uint32_t> servers;
  std::uint32_t current = 0;
  for (const Rank rank : communicator.ranks) {
    const sim::Npu& npu = cluster.npu(rank);
    if (runs.lengths.empty() || npu.server != current) {
      runs.by_server = servers.insert(npu.server).second && runs.by_server;
      current = npu.server;
      runs.lengths.push_back(0);
    }
    runs.device_order = runs.device_order && npu.device == runs.lengths.back();
    ++runs.lengths.back();
  }
  return runs;
}

bool is_a3(const Communicator& communicator, const sim::Cluster& cluster) {
  std::vector<std::string> notes;
  return device::resolve_soc(cluster, communicator.ranks.front(), notes).generation == device::Generation::a3;
}

/// Transports of neighbours in rank on one server, and of those on two.
void set_transports(Topology& topology, const Communicator& communicator, const std::vector<Rank>& runs,
                    sim::Cluster& cluster) {
  const auto route = [&](Rank position) -> const sim::Route& {
    return cluster.route(communicator.ranks[position - 1], communicator.ranks[position]);
  };
  const auto pod_of = [&](Rank position) { return cluster.npu(communicator.ranks[position]).super_pod; };
  const bool has_pods = is_a3(communicator, cluster);
  std::optional<sim::Transport> inside;
  std::optional<sim::Transport> between;
  std::vector<Rank> pods{1};
  Rank first = 0;
  for (const Rank run : runs) {
    if (first > 0 && (has_pods || !between.has_value())) {
      const sim::Route& border = route(first);
      // Where RoCE is used in place of the bus, the bus still connects the servers.
      const bool in_pod =
          border.transport == sim::Transport::sdma || (border.between_ports && pod_of(first - 1) == pod_of(first));
      if (!between.has_value() || in_pod) between = border.transport;
      if (in_pod) {
        ++pods.back();
      } else {
        pods.push_back(1);
      }
    }
    if (run > 1 && !inside.has_value()) inside = route(first + 1).transport;
    first += run;
  }
  topology.inside = inside.value_or(topology.inside);
  topology.between = between.value_or(topology.between);
  if (has_pods && pods.size() > 1) topology.super_pods = std::move(pods);
}

}  // namespace

Topology topology_of(const Communicator& communicator, sim::Cluster& cluster) {
  const Runs runs = runs_of(communicator, cluster);
  std::set<std::uint32_t> servers;
  for (const Rank rank : communicator.ranks) servers.insert(cluster.npu(rank).server);
  Topology topology{.ranks = static_cast<Rank>(communicator.ranks.size()),
                    .servers = static_cast<Rank>(servers.size())};
  if (communicator.ranks.empty()) return topology;
  set_transports(topology, communicator, runs.lengths, cluster);
  if (!runs.by_server) {
    topology.super_pods.clear();
    return topology;
  }
  const Rank size = runs.lengths.front();
  if (std::any_of(runs.lengths.begin(), runs.lengths.end(), [&](Rank run) { return run != size; })) {
    topology.uneven_servers = runs.lengths;
    return topology;
  }
  topology.ranks_per_server = size;
  std::vector<Rank> devices(cluster.servers(), 0);
  for (Rank rank = 0; rank < cluster.size(); ++rank) ++devices[cluster.npu(rank).server];
  topology.whole_servers = runs.device_order && std::all_of(servers.begin(), servers.end(), [&](std::uint32_t server) {
                             return devices[server] == size;
                           });
  return topology;
}

}  // namespace hcclsim::hccl
