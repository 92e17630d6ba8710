#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/fabric/graph.hpp"
#include "sim/fabric/routing.hpp"

/// Ways through a fabric (graph.hpp) from host to host with the least number of links, of which a routing chooses one.
/// Switches choose, one after the other, as those of a real fabric do: each among its links that lead on one of the
/// shortest ways, in the order of the file.
///
/// - dmodk: by the destination alone, as SimGrid's FAT_TREE: destination number d takes way d mod k of k ways, and the
///   next switch goes on with d / k. Destinations are numbered by their switch, then in the order of the file.
/// - ecmp: by a hash of (seed, source, destination, queue pair, switch). All packets of a queue pair take one way, as
///   with the hash of addresses and ports in Ethernet switches; the switch is part of it, so that those of the next
///   level do not repeat the choice of the level below.
/// - ideal: see bundles().
namespace hcclsim::sim {

/// Links that ways take in place of each other: the first one stands for all, with the sum of their capacities.
struct LinkBundles {
  std::vector<LinkId> representative;  ///< of each link
  std::vector<std::uint32_t> links;    ///< of each representative: how many it stands for, 1 for those of no bundle
};

class Fabric {
 public:
  static constexpr FabricVertex none = 0xffffffff;

  explicit Fabric(FabricGraph graph);

  /// The vertex of a host; none: it is not in a fabric.
  [[nodiscard]] FabricVertex find(const std::string& host) const;

  /// The chosen way of a queue pair. Empty if there is none through switches, or if the file gives the two hosts a
  /// route of their own.
  [[nodiscard]] std::vector<LinkId> way(FabricVertex source, FabricVertex destination, const Routing& routing,
                                        std::uint32_t queue_pair);

  /// Whether some switch has a choice on the ways between some two hosts.
  [[nodiscard]] bool has_choice();

  /// The links of all ways of a pair of hosts that are as many links away from its source are a bundle, over which
  /// ideal routing spreads the bytes alike. `alike` tells whether two links have the same figures. Throws
  /// Error(bad_input, "routing") where the bytes of two pairs would spread differently over the same links: where
  /// bundles overlap, or their links or switches are not alike.
  [[nodiscard]] LinkBundles bundles(std::span<const Link> links);

 private:
  static constexpr std::uint32_t unreachable = 0xffffffff;

  [[nodiscard]] std::span<const FabricEdge> edges_of(FabricVertex vertex) const {
    return {edges_.data() + first_edge_[vertex], edges_.data() + first_edge_[vertex + 1]};
  }
  /// Whether a link whose end is as far from `end` as `distance` says leads on one of the shortest ways there.
  [[nodiscard]] bool leads_on(const FabricEdge& edge, FabricVertex end,
                              const std::vector<std::uint32_t>& distance) const {
    return distance[edge.from] != unreachable && distance[edge.to] + 1 == distance[edge.from] &&
           (edge.to == end || graph_.is_switch[edge.to]);
  }
  /// The attachments of all hosts.
  [[nodiscard]] std::vector<FabricVertex> ends() const;
  /// The only switch of a host, by which all its ways go; else the host.
  [[nodiscard]] FabricVertex attachment(FabricVertex host) const;
  /// Number of links from each vertex to this one.
  [[nodiscard]] const std::vector<std::uint32_t>& distances_to(FabricVertex vertex);
  void number_hosts();

  FabricGraph graph_;
  std::vector<FabricEdge> edges_;          // by vertex
  std::vector<std::uint32_t> first_edge_;  // by vertex
  std::vector<FabricEdge> arriving_;       // by the vertex where they end
  std::vector<std::uint32_t> first_arriving_;
  std::vector<std::vector<std::uint32_t>> distances_;  // by vertex where ways end; empty until asked for
  std::vector<std::uint32_t> number_;                  // of hosts, for dmodk
};

}  // namespace hcclsim::sim
