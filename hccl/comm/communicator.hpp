#pragma once

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

/// The first `size` ranks of the cluster.
[[nodiscard]] Communicator world_communicator(Rank size);

/// How a communicator's ranks fall into servers; what the choice of an algorithm depends on.
struct Topology {
  Rank ranks = 0;
  Rank servers = 0;
  /// Ranks on each server if all have the same number and are numbered server by server; 0 otherwise.
  Rank ranks_per_server = 0;
  /// All devices of every server take part, in the order of their numbers.
  bool whole_servers = false;
  /// Engines that move bytes within a server and between servers (taken from the first two neighbours in rank).
  sim::Transport inside = sim::Transport::sdma;
  sim::Transport between = sim::Transport::sdma;
  /// Ranks on each server, in the order of ranks, if the numbers differ and ranks are numbered server by server; empty
  /// otherwise.
  std::vector<Rank> uneven_servers{};

  /// Ranks on each server in the order of ranks; empty if ranks are not numbered server by server.
  [[nodiscard]] std::vector<Rank> server_sizes() const;
};

[[nodiscard]] Topology topology_of(const Communicator& communicator, sim::Cluster& cluster);

}  // namespace hcclsim::hccl
