#include "sim/network/network.hpp"

namespace hcclsim::sim {

std::string_view name_of(NetworkKind kind) { return kind == NetworkKind::simgrid ? "simgrid" : "fluid"; }

NetworkKind automatic_network(Rank npus, std::uint64_t transfers_at_once) {
  constexpr Rank most_npus = 64;
  // The time that SimGrid takes grows with the square of this number: a mesh of 16 NPUs 0.04 s, of 32 NPUs 0.8 s, of 48
  // NPUs 14 s for one allreduce.
  constexpr std::uint64_t most_transfers = 1024;
  return npus <= most_npus && transfers_at_once <= most_transfers ? NetworkKind::simgrid : NetworkKind::fluid;
}

std::unique_ptr<Network> make_network(NetworkKind kind, Cluster& cluster, EventLoop& loop, const FaultPlan* faults) {
  return kind == NetworkKind::simgrid ? make_simgrid_network(cluster, loop, faults)
                                      : make_fluid_network(cluster, loop, faults);
}

}  // namespace hcclsim::sim
