#include "sim/network/link_utilisation.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/max_min.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::uint32_t nobody = 0xffffffff;

/// The bytes that each link has carried, by its number.
std::vector<double> bytes_of_links(const Cluster& cluster, std::span<const Flow> flows) {
  std::vector<double> bytes(cluster.links().size());
  for (const Flow& flow : flows) {
    for (const LinkId link : flow.route->links) bytes[link] += flow.bytes;
  }
  return bytes;
}

/// Follows the rates of flows from date to date and writes down what each link does in each interval.
class Meter {
 public:
  Meter(const Cluster& cluster, const Intervals& intervals, LinkUtilisation& out, const FaultPlan* faults)
      : cluster_(cluster),
        faults_(faults),
        intervals_(intervals),
        width_((intervals.to - intervals.from) / static_cast<double>(intervals.count)),
        out_(out),
        rates_(cluster),
        links_(cluster.links().size()) {
    for (std::uint32_t i = 0; i < out.kinds.size(); ++i) kind_index_[out.kinds[i].kind] = i;
    for (std::uint32_t i = 0; i < out.links.size(); ++i) links_[out.links[i].link].named = i;
  }

  void follow(std::span<const Flow> flows) {
    flow_id_.resize(flows.size());
    std::vector<std::uint32_t> starts(flows.size());
    std::iota(starts.begin(), starts.end(), 0U);
    std::vector<std::uint32_t> ends = starts;
    std::sort(starts.begin(), starts.end(), [&](auto a, auto b) { return flows[a].start < flows[b].start; });
    std::sort(ends.begin(), ends.end(), [&](auto a, auto b) { return flows[a].end < flows[b].end; });
    auto start = starts.begin();
    std::size_t fault = 0;
    const auto next_fault = [&] {
      const bool more = faults_ != nullptr && fault < faults_->dates_of_transfers().size();
      return more ? faults_->dates_of_transfers()[fault] : std::numeric_limits<Seconds>::infinity();
    };
    for (auto end = ends.begin(); end != ends.end();) {
      const Seconds next_end = flows[*end].end;
      if (next_end < flows[*end].start) internal_error("a transfer ends before its first byte flows");
      const Seconds next_flow = start == starts.end() ? next_end : std::min(next_end, flows[*start].start);
      const Seconds date = std::min(next_flow, next_fault());
      pass_to(date);
      for (; start != starts.end() && flows[*start].start == date; ++start) begin(flows[*start], *start);
      for (; end != ends.end() && flows[*end].end == date; ++end) stop(flows[*end], *end);
      if (next_fault() <= date) {
        ++fault;
        apply_faults(flows, date);
      }
      for (const FlowId id : rates_.solve()) set_rate(id, rates_.rate(id));
    }
    pass_to(std::numeric_limits<Seconds>::infinity());
  }

 private:
  struct LinkState {
    double rate = 0;    // of all its flows
    Seconds since = 0;  // it has this rate
    double load = 0;    // of this interval so far, as a time
    std::uint32_t flows = 0;
    std::uint32_t named = nobody;  // in out_.links
    bool listed = false;           // in active_
  };
  struct FlowState {
    const Route* route = nullptr;
    double rate = 0;
  };

  void begin(const Flow& flow, std::uint32_t number) {
    const FlowId id = rates_.add(flow.route->links);
    if (id >= flows_.size()) flows_.resize(id + 1);
    flows_[id] = {flow.route, 0};
    flow_id_[number] = id;
    for (const LinkId link : flow.route->links) {
      carry(link);
      ++links_[link].flows;
      if (!links_[link].listed) active_.push_back(link);
      links_[link].listed = true;
    }
    rates_.start(id);
    if (faults_ != nullptr) rates_.renew(id, flow.route->links, faults_->stops(*flow.route, flow.start));
  }

  void stop(const Flow& flow, std::uint32_t number) {
    set_rate(flow_id_[number], 0);
    for (const LinkId link : flow.route->links) {
      if (--links_[link].flows == 0) links_[link].rate = 0;  // nothing is left of sums and differences
    }
    rates_.remove(flow_id_[number]);
  }

  void set_rate(FlowId id, double rate) {
    for (const LinkId link : flows_[id].route->links) {
      carry(link);
      links_[link].rate += rate - flows_[id].rate;
    }
    flows_[id].rate = rate;
  }

  void apply_faults(std::span<const Flow> flows, Seconds date) {
    for (const LinkId link : faults_->changing_links()) {
      rates_.set_capacity(link, cluster_.capacity(link) * faults_->bandwidth_factor(link, date));
    }
    for (std::size_t number = 0; number < flows.size(); ++number) {
      const Flow& flow = flows[number];
      if (flow.start <= date && date < flow.end) {
        rates_.renew(flow_id_[number], flow.route->links, faults_->stops(*flow.route, date));
      }
    }
  }

  /// Adds to a link's load what it has done up to now.
  void carry(LinkId link) {
    LinkState& state = links_[link];
    const Seconds time = now_ - std::max(state.since, intervals_.from);
    state.since = now_;
    if (time <= 0 || state.flows == 0) return;
    const double flows = cluster_.links()[link].shared ? 1 : state.flows;
    state.load += time * state.rate / flows / cluster_.capacity(link);
  }

  /// Moves the clock, through the ends of intervals that are on the way.
  void pass_to(Seconds date) {
    while (interval_ < intervals_.count && date >= end_of(interval_)) {
      now_ = end_of(interval_);
      close_interval();
    }
    if (interval_ < intervals_.count) now_ = date;
  }

  [[nodiscard]] Seconds end_of(std::size_t interval) const {
    return interval + 1 == intervals_.count ? intervals_.to
                                            : intervals_.from + width_ * static_cast<double>(interval + 1);
  }

  void close_interval() {
    for (const LinkId link : active_) {
      carry(link);
      LinkState& state = links_[link];
      const double load = state.load / width_;
      state.load = 0;
      LinkUtilisation::OfKind& kind = out_.kinds[kind_index_.at(cluster_.links()[link].kind)];
      kind.busiest[interval_] = std::max(kind.busiest[interval_], load);
      kind.mean[interval_] += load / static_cast<double>(kind.links);
      if (state.named != nobody) out_.links[state.named].load[interval_] = load;
      state.listed = state.flows > 0;
    }
    std::erase_if(active_, [&](LinkId link) { return !links_[link].listed; });
    ++interval_;
  }

  const Cluster& cluster_;
  const FaultPlan* faults_;  // null: there were none
  const Intervals& intervals_;
  Seconds width_;
  LinkUtilisation& out_;
  MaxMin rates_;
  std::map<LinkKind, std::uint32_t> kind_index_;
  std::vector<LinkState> links_;
  std::vector<FlowState> flows_;  // by id
  std::vector<FlowId> flow_id_;   // by number of the flow
  std::vector<LinkId> active_;    // links that carry or have carried something in this interval
  std::size_t interval_ = 0;
  Seconds now_ = 0;
};

}  // namespace

LinkUtilisation link_utilisation(const Cluster& cluster, std::span<const Flow> flows, const Intervals& intervals,
                                 std::size_t most_links, const FaultPlan* faults) {
  const std::vector<double> bytes = bytes_of_links(cluster, flows);
  std::map<LinkKind, std::vector<LinkId>> used;
  for (LinkId link = 0; link < bytes.size(); ++link) {
    if (bytes[link] > 0) used[cluster.links()[link].kind].push_back(link);
  }
  LinkUtilisation out;
  const std::vector<double> idle(intervals.count);
  for (auto& [kind, links] : used) {
    double sum = 0;
    for (const LinkId link : links) sum += bytes[link];
    out.kinds.push_back({kind, links.size(), sum, idle, idle});
    const auto time = [&](LinkId link) { return bytes[link] / cluster.capacity(link); };
    std::stable_sort(links.begin(), links.end(), [&](LinkId a, LinkId b) { return time(a) > time(b); });
    for (std::size_t i = 0; i < std::min(most_links, links.size()); ++i) {
      out.links.push_back({links[i], bytes[links[i]], idle});
    }
  }
  Meter(cluster, intervals, out, faults).follow(flows);
  return out;
}

}  // namespace hcclsim::sim
