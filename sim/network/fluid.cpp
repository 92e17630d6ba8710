#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/max_min.hpp"
#include "sim/network/memory_network.hpp"
#include "sim/network/network.hpp"

/// The network `fluid`: bytes flow at the rates of MaxMin, which are updated once per date at which flows start or end.
/// A flow whose rate never changes ends at start + n / rate, without any accumulation.
namespace hcclsim::sim {
namespace {

// Events of this network: what happens, and to which flow.
enum class What : std::uint8_t { start, end, update_rates, empty_arrives, part_arrives, fault };

constexpr unsigned tag_bits = 3;

std::uint64_t tag_of(What what, FlowId flow) {
  return std::uint64_t{flow} << tag_bits | static_cast<std::uint64_t>(what);
}

class FluidNetwork final : public MemoryNetwork, private EventHandler {
 public:
  /// Takes the links' capacities under the cluster's values in use; `memories` as in MaxMin. There are no faults where
  /// there are memories.
  FluidNetwork(const Cluster& cluster, EventLoop& loop, std::span<const BytesPerSecond> memories,
               const FaultPlan* faults)
      : cluster_(cluster), loop_(loop), faults_(faults), rates_(cluster, memories) {
    if (faults_ == nullptr) return;
    for (const Seconds date : faults_->dates_of_transfers()) loop_.at(date, {}, *this, tag_of(What::fault, 0));
  }

  void transfer(const Route& route, Access access, Bytes bytes, Seconds date, EventOrder order, EventHandler& handler,
                std::uint64_t tag) override {
    transfer(route, access, bytes, {}, date, order, handler, tag);
  }

  void transfer(const Route& route, Access access, Bytes bytes, std::span<const MemoryUse> memories, Seconds date,
                EventOrder order, EventHandler& handler, std::uint64_t tag) override {
    if (const std::uint32_t pairs = queue_pairs_of(route, bytes); pairs > 1) {
      deal(route, pairs, access, bytes, memories, date, order, handler, tag);
    } else {
      carry(route, access, bytes, memories, date, order, handler, tag);
    }
  }

  void move(double bytes, BytesPerSecond most, const MemoryUse& memory, Seconds date, EventOrder order,
            EventHandler& handler, std::uint64_t tag) override {
    const FlowId flow = rates_.add({}, {&memory, 1}, most);
    add(flow, bytes, order, handler, tag);
    loop_.at(date, order, *this, tag_of(What::start, flow));
  }

  [[nodiscard]] MemoryLimit limit() const override { return limit_; }

  void keep_rates() override { keeps_rates_ = true; }

  [[nodiscard]] std::span<const RateStep> rates() const override { return ended_; }

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
    bool by_memory = false;  // a memory makes the rate
    MemoryLimit limit{};     // before `since`
  };

  void add(FlowId flow, double bytes, EventOrder order, EventHandler& handler, std::uint64_t tag) {
    ++started_;
    if (flow >= transfers_.size()) transfers_.resize(flow + 1);
    transfers_[flow] = {bytes, 0, 0, {}, order, &handler, tag};
    if (!keeps_rates_) return;
    if (flow >= steps_.size()) steps_.resize(flow + 1);
    steps_[flow].clear();
  }

  /// Of a flow whose bytes are `factor` times those of the payload; good until the next call.
  std::span<const MemoryUse> loads(std::span<const MemoryUse> memories, double factor) {
    loads_.assign(memories.begin(), memories.end());
    for (MemoryUse& use : loads_) use.times /= factor;
    return loads_;
  }

  /// A transfer whose bytes several queue pairs carry.
  struct Dealt {
    std::uint32_t under_way = 0;  // parts
    EventHandler* handler = nullptr;
    std::uint64_t tag = 0;
  };

  void carry(const Route& route, Access access, Bytes bytes, std::span<const MemoryUse> memories, Seconds date,
             EventOrder order, EventHandler& handler, std::uint64_t tag) {
    const double factor = access == Access::write ? route.write_factor : route.read_factor;
    const bool empty = bytes == 0;
    const FlowId flow = empty ? rates_.add({}) : rates_.add(route.links, loads(memories, factor));
    add(flow, static_cast<double>(bytes) * factor, order, handler, tag);
    if (faults_ != nullptr) {
      if (flow >= ways_.size()) ways_.resize(flow + 1);
      ways_[flow] = {empty ? nullptr : &route, false};
    }
    const Seconds latency = faults_ == nullptr ? route.latency : faults_->latency(route, date);
    loop_.at(date + latency, order, *this, tag_of(empty ? What::empty_arrives : What::start, flow));
  }

  /// Gives each of the first `pairs` queue pairs the same number of bytes, the first ones one more if need be.
  void deal(const Route& route, std::uint32_t pairs, Access access, Bytes bytes, std::span<const MemoryUse> memories,
            Seconds date, EventOrder order, EventHandler& handler, std::uint64_t tag) {
    auto slot = static_cast<std::uint32_t>(dealt_.size());
    if (free_dealt_.empty()) {
      dealt_.emplace_back();
    } else {
      slot = free_dealt_.back();
      free_dealt_.pop_back();
    }
    dealt_[slot] = {pairs, &handler, tag};
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
      const Route& way = pair == 0 ? route : route.further->ways[pair - 1];
      const Bytes part = bytes / pairs + (pair < bytes % pairs ? 1 : 0);
      carry(way, access, part, memories, date, order, *this, tag_of(What::part_arrives, slot));
    }
  }

  void part_arrives(std::uint32_t slot) {
    if (--dealt_[slot].under_way > 0) return;
    const Dealt dealt = dealt_[slot];
    free_dealt_.push_back(slot);
    dealt.handler->on_event(dealt.tag);
  }

  void on_event(std::uint64_t tag) override {
    const auto flow = static_cast<FlowId>(tag >> tag_bits);
    switch (static_cast<What>(tag & ((1U << tag_bits) - 1))) {
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
      case What::part_arrives:
        part_arrives(flow);
        break;
      case What::fault:
        fault_ = true;
        request_update();
        break;
    }
  }

  void end(FlowId flow) {
    note_limit(transfers_[flow]);
    const Transfer transfer = transfers_[flow];
    limit_ = transfer.limit;
    if (faults_ != nullptr) ways_[flow] = {};
    rates_.remove(flow);
    ++completed_;
    if (keeps_rates_) ended_.swap(steps_[flow]);
    transfer.handler->on_event(transfer.tag);
  }

  /// What has flowed since the transfer got its rate.
  void note_limit(Transfer& transfer) const {
    if (!transfer.by_memory) return;
    const Seconds time = loop_.now() - transfer.since;
    transfer.limit.time += time;
    transfer.limit.bytes += time * transfer.rate;
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
        note_limit(transfer);
      }
      transfer.by_memory = rates_.limited_by_memory(flow);
      transfer.since = now;
      transfer.rate = rates_.rate(flow);
      if (keeps_rates_) steps_[flow].push_back({now, transfer.rate});
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
  std::vector<MemoryUse> loads_;     // scratch of loads()
  std::vector<Dealt> dealt_;
  std::vector<std::uint32_t> free_dealt_;  // of dealt_
  bool update_requested_ = false;
  bool fault_ = false;   // at this date
  MemoryLimit limit_{};  // of the flow that has just ended
  bool keeps_rates_ = false;
  std::vector<std::vector<RateStep>> steps_;  // by flow, if they are kept
  std::vector<RateStep> ended_;               // of the flow that has just ended
};

}  // namespace

std::unique_ptr<Network> make_fluid_network(const Cluster& cluster, EventLoop& loop, const FaultPlan* faults) {
  return std::make_unique<FluidNetwork>(cluster, loop, std::span<const BytesPerSecond>{}, faults);
}

std::unique_ptr<MemoryNetwork> make_memory_network(const Cluster& cluster, EventLoop& loop,
                                                   std::span<const BytesPerSecond> memories) {
  for (const BytesPerSecond memory : memories) {
    if (!(memory > 0)) internal_error("a memory of {} B/s", memory);
  }
  return std::make_unique<FluidNetwork>(cluster, loop, memories, nullptr);
}

}  // namespace hcclsim::sim
