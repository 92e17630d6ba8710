#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/cluster.hpp"

/// The switches, hosts and links of the fabrics of a platform file, as the file says them: clusters of topology
/// FAT_TREE, and zones of routing Floyd, Dijkstra or DijkstraCache, whose routes join hosts and routers to a graph.
namespace hcclsim::sim {

/// A host or a switch.
using FabricVertex = std::uint32_t;

struct FabricEdge {
  FabricVertex from = 0;
  FabricVertex to = 0;
  LinkId link = 0;
};

struct FabricGraph {
  std::unordered_map<std::string, FabricVertex> hosts;  ///< by name
  std::vector<bool> is_switch;                          ///< by vertex; hosts pass nothing on
  std::vector<FabricEdge> edges;                        ///< both directions of every link, in the order of the file
  std::unordered_set<std::uint64_t> own_ways;           ///< fabric_pair() of hosts with a route of their own
};

[[nodiscard]] constexpr std::uint64_t fabric_pair(FabricVertex from, FabricVertex to) {
  return std::uint64_t{from} << 32U | to;
}

/// Reads a file that passed its check (sim/platform/check.hpp); `links` are those that SimGrid has made of it. Throws
/// Error(bad_input, "routing") for a fabric that cannot be understood, such as a FAT_TREE with limiter_link.
[[nodiscard]] FabricGraph read_fabric_graph(const std::string& path, std::span<const Link> links);

}  // namespace hcclsim::sim
