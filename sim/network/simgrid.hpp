#pragma once

#include <simgrid/s4u/Comm.hpp>

#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/network/network.hpp"

/// The network `simgrid`: every transfer is a Comm of SimGrid on SimGrid's own network model. Only the latency is paid
/// by us, before the Comm starts: SimGrid's sharing is max-min fair when no link has a latency.
namespace hcclsim::sim {

class SimgridNetwork final : public Network, private EventHandler {
 public:
  /// Sets the capacities of SimGrid's links; only one such network can be made per process.
  SimgridNetwork(const Cluster& cluster, EventLoop& loop);
  ~SimgridNetwork() override;

  void transfer(const Route& route, Access access, Bytes bytes, Seconds date, EventOrder order, EventHandler& handler,
                std::uint64_t tag) override;
  [[nodiscard]] std::uint64_t started() const override { return started_; }
  [[nodiscard]] std::uint64_t completed() const override { return completed_; }

 private:
  struct Transfer {
    simgrid::s4u::Host* source = nullptr;
    simgrid::s4u::Host* destination = nullptr;
    std::uint64_t payload = 0;  // scaled bytes; 0 once they have arrived
    EventOrder order;
    EventHandler* handler = nullptr;
    std::uint64_t tag = 0;
    simgrid::s4u::CommPtr comm;  // dropped a round after its end: SimGrid still needs it in its own callback
  };

  void on_event(std::uint64_t slot) override;
  void start(std::uint32_t slot);
  void on_completion(const simgrid::s4u::Activity& activity);

  const Cluster& cluster_;
  EventLoop& loop_;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<const simgrid::s4u::Activity*, std::uint32_t> under_way_;
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
};

}  // namespace hcclsim::sim
