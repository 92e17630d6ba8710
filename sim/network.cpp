#include "sim/network.hpp"

#include "sim/network_fluid.hpp"
#include "sim/network_simgrid.hpp"

namespace hcclsim::sim {

std::string_view name_of(NetworkKind kind) { return kind == NetworkKind::simgrid ? "simgrid" : "fluid"; }

std::unique_ptr<Network> make_network(NetworkKind kind, Cluster& cluster, EventLoop& loop) {
  if (kind == NetworkKind::simgrid) return std::make_unique<SimgridNetwork>(cluster, loop);
  return std::make_unique<FluidNetwork>(cluster, loop);
}

}  // namespace hcclsim::sim
