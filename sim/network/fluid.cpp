#include "sim/network/fluid.hpp"

#include <algorithm>

namespace hcclsim::sim {
namespace {

// Events of this network: what happens, and to which flow.
enum class What : std::uint8_t { start, end, update_rates, empty_arrives };

std::uint64_t tag_of(What what, FlowId flow) { return std::uint64_t{flow} << 2 | static_cast<std::uint64_t>(what); }

}  // namespace

void FluidNetwork::transfer(const Route& route, Access access, Bytes bytes, Seconds date, EventOrder order,
                            EventHandler& handler, std::uint64_t tag) {
  ++started_;
  const FlowId flow = rates_.add(bytes == 0 ? std::span<const LinkId>{} : route.links);
  if (flow >= transfers_.size()) transfers_.resize(flow + 1);
  const double factor = access == Access::write ? route.write_factor : route.read_factor;
  transfers_[flow] = {static_cast<double>(bytes) * factor, 0, 0, {}, order, &handler, tag};
  loop_.at(date + route.latency, order, *this, tag_of(bytes == 0 ? What::empty_arrives : What::start, flow));
}

void FluidNetwork::on_event(std::uint64_t tag) {
  const auto flow = static_cast<FlowId>(tag >> 2);
  switch (static_cast<What>(tag & 3)) {
    case What::start:
      rates_.start(flow);
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
  }
}

void FluidNetwork::end(FlowId flow) {
  const Transfer transfer = transfers_[flow];
  rates_.remove(flow);
  ++completed_;
  transfer.handler->on_event(transfer.tag);
}

void FluidNetwork::request_update() {
  if (update_requested_) return;
  update_requested_ = true;
  loop_.at_end_of_date(*this, tag_of(What::update_rates, 0));
}

void FluidNetwork::update_rates() {
  update_requested_ = false;
  const Seconds now = loop_.now();
  for (const FlowId flow : rates_.solve()) {
    Transfer& transfer = transfers_[flow];
    if (transfer.rate > 0) {
      transfer.left = std::max(0.0, transfer.left - transfer.rate * (now - transfer.since));
      loop_.cancel(transfer.end);
    }
    transfer.since = now;
    transfer.rate = rates_.rate(flow);
    transfer.end = loop_.at(now + transfer.left / transfer.rate, transfer.order, *this, tag_of(What::end, flow));
  }
}

}  // namespace hcclsim::sim
