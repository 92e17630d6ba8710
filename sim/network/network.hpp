#pragma once

#include <memory>
#include <string_view>

#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/event_loop.hpp"
#include "sim/network_kind.hpp"

/// Moves bytes between NPUs. A transfer of n bytes over an idle route takes exactly route.latency + n / B; transfers
/// that meet on a link share its capacity by max-min fairness. There are two implementations, which agree to 1e-9:
/// `simgrid` uses SimGrid's own Comm on its own network model and is the reference; `fluid` is our solver, for
/// thousands of NPUs.
namespace hcclsim::sim {

class FaultPlan;

/// A transfer flows at this rate from a date on, in bytes as they load the links' capacity.
struct RateStep {
  Seconds from = 0;
  BytesPerSecond rate = 0;
};

class Network {
 public:
  virtual ~Network() = default;

  /// Sends `bytes` along `route` at `date` (not before now()): after route.latency they start to flow, and when the
  /// last one has arrived handler.on_event(tag) is called, among the events of that date in `order`. Where the route
  /// has several queue pairs, the bytes are dealt to as many of them as queue_pairs_of() says.
  virtual void transfer(const Route& route, Access access, Bytes bytes, Seconds date, EventOrder order,
                        EventHandler& handler, std::uint64_t tag) = 0;

  /// Numbers of transfers that were started and that have ended, so that a result can state that all of them completed.
  [[nodiscard]] std::uint64_t started() const { return started_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }

 protected:
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
};

/// With `simgrid`, only before anything else has been simulated in this process. `faults`, null if there are none, must
/// outlive the network: at their dates capacities change, and all rates with them; a transfer over a link that is cut,
/// or from or to an NPU that stands still, keeps what it has moved and goes on when it can.
[[nodiscard]] std::unique_ptr<Network> make_network(NetworkKind kind, Cluster& cluster, EventLoop& loop,
                                                    const FaultPlan* faults = nullptr);
[[nodiscard]] std::unique_ptr<Network> make_fluid_network(const Cluster& cluster, EventLoop& loop,
                                                          const FaultPlan* faults);

}  // namespace hcclsim::sim
