#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/comm/group_name.hpp"
#include "sim/cluster.hpp"

/// Communicators: which NPUs take part in collectives together, and how they lie in the cluster.
namespace hcclsim::hccl {

struct Communicator {
  std::string name;         ///< world_group or the user's
  std::vector<Rank> ranks;  ///< world rank of each rank of the communicator
};

/// "0-7,16-23": ranks in their order, those that follow each other as one range.
[[nodiscard]] std::string rank_ranges(std::span<const Rank> ranks);

/// The first `size` ranks of the cluster.
[[nodiscard]] Communicator world_communicator(Rank size);

/// Throws Error(bad_input, "communicator") if the cluster of `npus` lacks one of the NPUs or one takes part twice.
void check_members(const Communicator& communicator, Rank npus);

/// How far apart ranks are: in one server, in one super-pod, or farther.
enum class Extent : std::uint8_t { server, super_pod, cluster };

/// How a communicator's ranks are distributed over servers and, on A3, over super-pods. The choice of an algorithm
/// depends on it.
struct Topology {
  Rank ranks = 0;
  Rank servers = 0;
  /// Ranks on each server if all have the same number and are numbered server by server; 0 otherwise.
  Rank ranks_per_server = 0;
  /// All devices of every server take part, in the order of their numbers.
  bool whole_servers = false;
  /// Engines that move bytes within a server, between servers (of one super-pod, if a super-pod has several) and
  /// between super-pods; found by looking at ranks that are neighbours.
  sim::Transport inside = sim::Transport::sdma;
  sim::Transport between = sim::Transport::sdma;
  sim::Transport between_pods = sim::Transport::rdma;
  /// Ranks on each server, in the order of ranks, if the numbers differ and ranks are numbered server by server; empty
  /// otherwise.
  std::vector<Rank> uneven_servers{};
  /// Servers of each super-pod, in the order of ranks, if the A3 servers are in several super-pods: a super-pod is a
  /// run of servers whose neighbours the file connects without RoCE. Empty otherwise, and if ranks are not numbered
  /// server by server.
  std::vector<Rank> super_pods{};

  /// Ranks on each server in the order of ranks; empty if ranks are not numbered server by server.
  [[nodiscard]] std::vector<Rank> server_sizes() const;
  /// Ranks in each super-pod, in the order of ranks; empty if there are no super-pods.
  [[nodiscard]] std::vector<Rank> super_pod_sizes() const;
  /// Servers per group if all groups are to be equal and none spans two super-pods: the greatest common divisor of the
  /// super-pods' sizes, as in HCCL's algorithm NHR-HCF. Without super-pods, all servers.
  [[nodiscard]] Rank servers_per_pod() const;
  /// How far apart ranks are within blocks of `span` consecutive ranks.
  [[nodiscard]] Extent extent_of(std::uint64_t span) const;
  [[nodiscard]] sim::Transport transport_over(Extent extent) const;

  bool operator==(const Topology&) const = default;
};

[[nodiscard]] Topology topology_of(const Communicator& communicator, sim::Cluster& cluster);

}  // namespace hcclsim::hccl
