#pragma once

#include <vector>

#include "sim/network/max_min.hpp"
#include "sim/network/network.hpp"

/// The network `fluid`: bytes flow at the rates of MaxMin, which are updated once per date at which flows start or end.
/// A flow whose rate never changes ends at start + n / rate, without any accumulation.
namespace hcclsim::sim {

class FluidNetwork final : public Network, private EventHandler {
 public:
  /// Takes the links' capacities under the cluster's values in use.
  FluidNetwork(const Cluster& cluster, EventLoop& loop) : loop_(loop), rates_(cluster) {}

  void transfer(const Route& route, Access access, Bytes bytes, Seconds date, EventOrder order, EventHandler& handler,
                std::uint64_t tag) override;
  [[nodiscard]] std::uint64_t started() const override { return started_; }
  [[nodiscard]] std::uint64_t completed() const override { return completed_; }

 private:
  /// What is known of a flow besides its rate.
  struct Transfer {
    double left = 0;    // bytes at the date `since`
    Seconds since = 0;  // when it got its rate
    double rate = 0;    // 0 before it has one
    EventId end;        // valid once it has a rate
    EventOrder order;
    EventHandler* handler = nullptr;
    std::uint64_t tag = 0;
  };

  void on_event(std::uint64_t tag) override;
  void start(FlowId flow);
  void end(FlowId flow);
  void update_rates();
  void request_update();

  EventLoop& loop_;
  MaxMin rates_;
  std::vector<Transfer> transfers_;  // by flow
  bool update_requested_ = false;
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
};

}  // namespace hcclsim::sim
