#pragma once

#include <memory>

#include "sim/network/network.hpp"

namespace hcclsim::sim {

/// The network `simgrid` of a cluster whose file this process has loaded into SimGrid. `faults` may be null.
[[nodiscard]] std::unique_ptr<Network> make_simgrid_comms(const Cluster& cluster, EventLoop& loop,
                                                          const FaultPlan* faults);

}  // namespace hcclsim::sim
