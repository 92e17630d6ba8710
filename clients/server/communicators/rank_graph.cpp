#include "clients/server/communicators/rank_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <hccl/hccl_rank_graph.h>

namespace hcclsim::clients {
namespace {

using Numbers = std::vector<std::uint32_t>;

/// The part of the layer that each rank is in; empty: the communicator has no such layer.
Numbers parts_of_layer(const Core& core, const CommunicatorGroup& group, std::uint64_t layer) {
  std::map<std::uint32_t, std::uint32_t> servers;  // in the order of ranks
  Numbers server_of;
  for (const Rank npu : group.npus) {
    const auto number = static_cast<std::uint32_t>(servers.size());
    server_of.push_back(servers.try_emplace(core.cluster.npu(npu).server, number).first->second);
  }
  const std::vector<Rank>& pods = group.topology.super_pods;
  if (layer == 0) return server_of;
  if (servers.size() == 1 || layer > (pods.empty() ? 1 : 2)) return {};
  if (layer == 2 || pods.empty()) return Numbers(server_of.size(), 0);
  Numbers pod_of_server;
  for (std::uint32_t pod = 0; pod < pods.size(); ++pod) pod_of_server.insert(pod_of_server.end(), pods[pod], pod);
  Numbers parts;
  for (const std::uint32_t server : server_of) parts.push_back(pod_of_server.at(server));
  return parts;
}

Result result_of(const Numbers& numbers) {
  return {.bytes = std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0])};
}

CommProtocol protocol_between(sim::Cluster& cluster, Rank npu, Rank other) {
  std::array<bool, sim::link_kinds> kinds{};
  for (const sim::LinkId link : cluster.route(npu, other).links) {
    kinds.at(static_cast<std::size_t>(cluster.links()[link].kind)) = true;
  }
  const auto has = [&](sim::LinkKind kind) { return kinds.at(static_cast<std::size_t>(kind)); };
  if (has(sim::LinkKind::roce) || has(sim::LinkKind::other)) return COMM_PROTOCOL_ROCE;
  if (has(sim::LinkKind::pcie)) return COMM_PROTOCOL_PCIE;
  return has(sim::LinkKind::sio) && !has(sim::LinkKind::ub) ? COMM_PROTOCOL_SIO : COMM_PROTOCOL_HCCS;
}

LinkEnd end_of(const sim::Npu& npu) { return {npu.device, npu.server, npu.super_pod}; }

Result link(const Core& core, const CommunicatorGroup& group, const Question& question, const Numbers& parts) {
  const auto [handle, layer, source, destination, a, b, c, d] = question.values;
  if (source >= group.ranks() || destination >= group.ranks() || source == destination) {
    return refused(HCCL_E_PARA,
                   fmt::format("ranks {} and {} of a communicator of {}", source, destination, group.ranks()));
  }
  const Numbers below = layer == 0 ? Numbers() : parts_of_layer(core, group, layer - 1);
  const bool connects = parts[source] == parts[destination];
  if (!connects || (layer > 0 && below[source] == below[destination])) return {};
  const Rank npu = group.npus[source];
  const Rank other = group.npus[destination];
  const std::array<LinkEnd, 2> ends{end_of(core.cluster.npu(npu)), end_of(core.cluster.npu(other))};
  return {.values = {static_cast<std::uint64_t>(protocol_between(core.cluster, npu, other))},
          .bytes = std::string(reinterpret_cast<const char*>(ends.data()), sizeof ends)};
}

}  // namespace

Result rank_graph(const Core& core, const ClientCommunicator& own, const Question& question) {
  const CommunicatorGroup& group = *own.group;
  if (core.platform.soc.generation == device::Generation::a1) {
    return refused(HCCL_E_NOT_SUPPORT, "HCCL has no rank graph of the 910A");
  }
  const std::uint64_t layer = question.values[1];
  if (question.call == Call::graph_layers) {
    Numbers layers;
    for (std::uint32_t one = 0; !parts_of_layer(core, group, one).empty(); ++one) layers.push_back(one);
    return result_of(layers);
  }
  const Numbers parts = parts_of_layer(core, group, layer);
  if (parts.empty()) return refused(HCCL_E_PARA, fmt::format("netLayer {}: the communicator does not have it", layer));
  switch (question.call) {
    case Call::graph_ranks: {
      Numbers ranks;
      for (Rank rank = 0; rank < group.ranks(); ++rank) {
        if (parts[rank] == parts[own.rank]) ranks.push_back(rank);
      }
      return result_of(ranks);
    }
    case Call::graph_type: {
      const bool is_a3 = core.platform.soc.generation == device::Generation::a3;
      const CommTopo inside = is_a3 ? COMM_TOPO_910_93 : COMM_TOPO_1DMESH;
      return {.values = {static_cast<std::uint64_t>(layer == 0 ? inside : COMM_TOPO_CLOS)}};
    }
    case Call::graph_sizes: {
      Numbers sizes(1 + *std::ranges::max_element(parts), 0);
      for (const std::uint32_t part : parts) ++sizes[part];
      return result_of(sizes);
    }
    default:
      return link(core, group, question, parts);
  }
}

}  // namespace hcclsim::clients
