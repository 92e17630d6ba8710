#include "sim/network/network.hpp"

#include "sim/simgrid_module.hpp"

namespace hcclsim::sim {

std::string_view name_of(NetworkKind kind) { return kind == NetworkKind::simgrid ? "simgrid" : "fluid"; }

std::unique_ptr<Network> make_network(NetworkKind kind, Cluster& cluster, EventLoop& loop, const FaultPlan* faults) {
  return kind == NetworkKind::simgrid ? simgrid_module().make_network(cluster, loop, faults)
                                      : make_fluid_network(cluster, loop, faults);
}

}  // namespace hcclsim::sim
