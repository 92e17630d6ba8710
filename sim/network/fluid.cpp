#include <algorithm>
#include <utility>
#include <vector>

#include "sim/faults/fault_plan.hpp"
#include "sim/network/max_min.hpp"
#include "sim/network/network.hpp"

/// The network `fluid`: bytes flow at the rates of MaxMin, which are updated once per date at which flows start or end.
/// A flow whose rate never changes ends at start + n / rate, without any accumulation.
namespace hcclsim::sim {
namespace {

// Events of this network: what happens, and to which flow.
enum class What : std::uint8_t { start, end, update_rates, empty_arrives, fault };

constexpr unsigned what_bits = 3;

std::uint64_t tag_of(What what, FlowId flow) {
  return std::uint64_t{flow} << what_bits | static_cast<std::uint64_t>(what);
}

class FluidNetwork final : public Network, private EventHandler {
 public:
  /// Takes the links' capacities under the cluster's values in use.
  FluidNetwork(const Cluster& cluster, EventLoop& loop, const FaultPlan* faults)
      : cluster_(cluster), loop_(loop), faults_(faults), rates_(cluster) {
    if (faults_ == nullptr) return;
    for (const Seconds date : faults_->dates_of_transfers()) loop_.at(date, {}, *this, tag_of(What::fault, 0));
  }

  void transfer(const Route& route, Access access, Bytes bytes, Seconds date, EventOrder order, EventHandler& handler,
                std::uint64_t tag) override {
    ++started_;
    const FlowId flow = rates_.add(bytes == 0 ? std::span<const LinkId>{} : route.links);
    if (flow >= transfers_.size()) transfers_.resize(flow + 1);
    const double factor = access == Access::write ? route.write_factor : route.read_factor;
    transfers_[flow] = {static_cast<double>(bytes) * factor, 0, 0, {}, order, &handler, tag};
    if (faults_ != nullptr) {
      if (flow >= ways_.size()) ways_.resize(flow + 1);
      ways_[flow] = {bytes == 0 ? nullptr : &route, false};
    }
    const Seconds latency = faults_ == nullptr ? route.latency : faults_->latency(route, date);
    loop_.at(date + latency, order, *this, tag_of(bytes == 0 ? What::empty_arrives : What::start, flow));
  }

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

  void on_event(std::uint64_t tag) override {
    const auto flow = static_cast<FlowId>(tag >> what_bits);
    switch (static_cast<What>(tag & ((1U << what_bits) - 1))) {
      case What::start:
        rates_.start(flow);
        if (faults_ != nullptr) {
          ways_[flow].flows = true;
          renew(flow);
        }
        request_update();
        break;
      case What::end:
        request_update();
        end(flow);
        break;
      case What::empty_arrives:
        end(flow);
        break;
      case What::update_rates:
        update_rates();
        break;
      case What::fault:
        fault_ = true;
        request_update();
        break;
    }
  }

  void end(FlowId flow) {
    const Transfer transfer = transfers_[flow];
    if (faults_ != nullptr) ways_[flow] = {};
    rates_.remove(flow);
    ++completed_;
    transfer.handler->on_event(transfer.tag);
  }

  void update_rates() {
    update_requested_ = false;
    const Seconds now = loop_.now();
    if (std::exchange(fault_, false)) apply_faults(now);
    for (const FlowId flow : rates_.solve()) {
      Transfer& transfer = transfers_[flow];
      if (transfer.rate > 0) {
        transfer.left = std::max(0.0, transfer.left - transfer.rate * (now - transfer.since));
        loop_.cancel(transfer.end);
      }
      transfer.since = now;
      transfer.rate = rates_.rate(flow);
      if (transfer.rate == 0) continue;  // a fault holds it
      transfer.end = loop_.at(now + transfer.left / transfer.rate, transfer.order, *this, tag_of(What::end, flow));
    }
  }

  /// Takes capacities as they are from now on. Flows that end at this date are gone by now.
  void apply_faults(Seconds now) {
    for (const LinkId link : faults_->changing_links()) {
      rates_.set_capacity(link, cluster_.capacity(link) * faults_->bandwidth_factor(link, now));
    }
    for (FlowId flow = 0; flow < ways_.size(); ++flow) {
      if (ways_[flow].flows) renew(flow);
    }
  }

  void renew(FlowId flow) {
    const Route& route = *ways_[flow].route;
    rates_.renew(flow, route.links, faults_->stops(route, loop_.now()));
  }

  void request_update() {
    if (update_requested_) return;
    update_requested_ = true;
    loop_.at_end_of_date(*this, tag_of(What::update_rates, 0));
  }

  /// With faults: the way of a flow, and whether it was started.
  struct Way {
    const Route* route = nullptr;
    bool flows = false;
  };

  const Cluster& cluster_;
  EventLoop& loop_;
  const FaultPlan* faults_;  // null: there are none
  MaxMin rates_;
  std::vector<Transfer> transfers_;  // by flow
  std::vector<Way> ways_;            // by flow
  bool update_requested_ = false;
  bool fault_ = false;  // at this date
};

}  // namespace

std::unique_ptr<Network> make_fluid_network(const Cluster& cluster, EventLoop& loop, const FaultPlan* faults) {
  return std::make_unique<FluidNetwork>(cluster, loop, faults);
}

}  // namespace hcclsim::sim
