#pragma once

#include <memory>

/// What needs SimGrid: platform files that we do not read ourselves, and the network `simgrid`, the reference. It is a
/// library of its own, libhcclsim_simgrid.so, loaded when it is first asked for: SimGrid and what it brings along take
/// longer to load than a step of eight NPUs takes to simulate.
namespace hcclsim::sim {

class Cluster;
class EventLoop;
class FaultPlan;
class Network;
class PlatformSource;

class SimgridModule {
 public:
  virtual ~SimgridModule() = default;

  /// Loads the cluster's file, with its edits, into SimGrid, which holds one platform per process. Throws
  /// Error(bad_input, "platform") for what SimGrid refuses, and Error(internal) in a process that has loaded one.
  [[nodiscard]] virtual std::unique_ptr<PlatformSource> load(const Cluster& cluster) = 0;

  /// The network `simgrid`; loads the cluster's file if this process has loaded none. SimGrid then keeps the clock of
  /// the loop. Faults as make_network() of sim/network/network.hpp takes them.
  [[nodiscard]] virtual std::unique_ptr<Network> make_network(const Cluster& cluster, EventLoop& loop,
                                                              const FaultPlan* faults) = 0;

  /// Lets SimGrid keep the clock of the loop, beside whatever else SimGrid simulates in this process.
  virtual void keep_clock(EventLoop& loop) = 0;
};

/// Loads the library if it is not loaded. Throws Error(internal, "simgrid") if it is not found beside the command, nor
/// where libraries are installed.
[[nodiscard]] SimgridModule& simgrid_module();

}  // namespace hcclsim::sim
