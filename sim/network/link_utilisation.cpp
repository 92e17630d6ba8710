#include "sim/network/link_utilisation.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/max_min.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::uint32_t nobody = 0xffffffff;

/// How the links of a cluster stand for each other.
class Images {
 public:
  explicit Images(const Cluster& cluster) : fold_(cluster.link_fold()) {
    if (fold_ == nullptr) return;
    links_.resize(cluster.links().size());
    for (const LinkId link : fold_->representative) ++links_[link];
  }

  [[nodiscard]] LinkId representative(LinkId link) const {
    return fold_ == nullptr ? link : fold_->representative[link];
  }
  /// How many links it stands for, itself included.
  [[nodiscard]] std::size_t links(LinkId link) const { return fold_ == nullptr ? 1 : links_[link]; }
  /// How many flows each of them carries for one over this link.
  [[nodiscard]] std::uint64_t flows(LinkId link) const { return fold_ == nullptr ? 1 : fold_->flows[link]; }

 private:
  const LinkFold* fold_;
  std::vector<std::size_t> links_;
};

/// What is known of a link after the simulation. Of links that are folded into one, that one has it.
struct Carried {
  Bytes bytes = 0;               // of the flows that count
  Seconds load = 0;              // in all intervals: the time for what it carried, at its capacity without faults
  Seconds open = 0;              // in all intervals: the time for what it could have carried, at that capacity
  Seconds busy = 0;              // in all intervals
  Seconds busy_open = 0;         // as `open`, while it is busy
  std::uint32_t most_flows = 0;  // at the same time
  std::vector<double> loads{};   // of the intervals; empty: none in any

  [[nodiscard]] double utilisation() const { return open > 0 ? load / open : 0; }
  [[nodiscard]] double while_busy() const { return busy_open > 0 ? load / busy_open : 0; }
};

/// A flow gets another rate.
struct RateChange {
  Seconds date = 0;
  std::uint32_t flow = 0;  // number
  double rate = 0;
};

/// Those that the simulation recorded, in the order of their dates.
std::vector<RateChange> recorded_rates(std::span<const Flow> flows) {
  std::vector<RateChange> changes;
  for (std::uint32_t number = 0; number < flows.size(); ++number) {
    for (const RateStep& step : flows[number].rates) changes.push_back({step.from, number, step.rate});
  }
  std::ranges::stable_sort(changes, {}, &RateChange::date);
  return changes;
}

/// Follows the rates of flows from date to date and writes down what each link does in each interval.
class Meter {
 public:
  Meter(Cluster& cluster, const Intervals& intervals, std::vector<Carried>& carried, const FaultPlan* faults)
      : cluster_(cluster),
        faults_(faults),
        intervals_(intervals),
        width_((intervals.to - intervals.from) / static_cast<double>(intervals.count)),
        carried_(carried),
        rates_(cluster),
        links_(cluster.links().size()) {}

  void follow(std::span<const Flow> flows) {
    recorded_ = recorded_rates(flows);
    flow_id_.resize(flows.size(), nobody);
    std::vector<std::uint32_t> starts;
    for (std::uint32_t i = 0; i < flows.size(); ++i) {
      if (flows[i].end > intervals_.from && flows[i].start < intervals_.to) starts.push_back(i);
    }
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
      const Seconds date = std::min({next_flow, next_fault(), next_recorded()});
      pass_to(date);
      for (; start != starts.end() && flows[*start].start == date; ++start) begin(flows[*start], *start);
      for (; end != ends.end() && flows[*end].end == date; ++end) stop(*end);
      if (next_fault() <= date) {
        ++fault;
        apply_faults(date);
      }
      if (recorded_.empty()) {
        for (const FlowId id : rates_.solve()) set_rate(id, rates_.rate(id));
      } else {
        take_recorded(date);
      }
    }
    pass_to(std::numeric_limits<Seconds>::infinity());
    for (Carried& carried : carried_) carried.open = intervals_.to - intervals_.from;
    if (faults_ == nullptr) return;
    for (const LinkId link : faults_->changing_links()) {
      carried_[link].open = open(link, intervals_.from, intervals_.to);
    }
  }

 private:
  struct LinkState {
    double rate = 0;    // of all its flows
    Seconds since = 0;  // it has this rate
    double load = 0;    // of this interval so far, as a time
    double factor = 1;  // on its capacity, by faults
    std::uint32_t flows = 0;
    bool listed = false;  // in active_
  };
  struct FlowState {
    const Route* route = nullptr;
    double rate = 0;
  };

  void begin(const Flow& flow, std::uint32_t number) {
    const Route& route = cluster_.route(flow.source, flow.destination);
    const FlowId id = rates_.add(route.links);
    if (id >= flows_.size()) flows_.resize(id + 1);
    flows_[id] = {&route, 0};
    flow_id_[number] = id;
    for (const LinkId link : route.links) {
      carry(link);
      ++links_[link].flows;
      if (!links_[link].listed) active_.push_back(link);
      links_[link].listed = true;
    }
    rates_.start(id);
    if (faults_ != nullptr) rates_.renew(id, flows_[id].route->links, faults_->stops(*flows_[id].route, flow.start));
  }

  void stop(std::uint32_t number) {
    const FlowId id = flow_id_[number];
    set_rate(id, 0);
    for (const LinkId link : flows_[id].route->links) {
      if (--links_[link].flows == 0) links_[link].rate = 0;  // nothing is left of sums and differences
    }
    rates_.remove(id);
    flow_id_[number] = nobody;
  }

  [[nodiscard]] Seconds next_recorded() const {
    return next_change_ < recorded_.size() ? recorded_[next_change_].date : std::numeric_limits<Seconds>::infinity();
  }

  void take_recorded(Seconds date) {
    for (; next_recorded() <= date; ++next_change_) {
      const RateChange& change = recorded_[next_change_];
      if (flow_id_[change.flow] != nobody) set_rate(flow_id_[change.flow], change.rate);
    }
  }

  void set_rate(FlowId id, double rate) {
    for (const LinkId link : flows_[id].route->links) {
      carry(link);
      links_[link].rate += rate - flows_[id].rate;
    }
    flows_[id].rate = rate;
  }

  void apply_faults(Seconds date) {
    for (const LinkId link : faults_->changing_links()) {
      carry(link);
      links_[link].factor = faults_->bandwidth_factor(link, date);
      rates_.set_capacity(link, cluster_.capacity(link) * links_[link].factor);
    }
    for (const FlowId id : flow_id_) {
      if (id == nobody) continue;  // over, yet to come, or of no interval
      const Route& route = *flows_[id].route;
      rates_.renew(id, route.links, faults_->stops(route, date));
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
    Carried& carried = carried_[link];
    carried.busy += time;
    carried.busy_open += time * state.factor;
    // Of two dates that are one, but for rounding, flows of the first are over at the second.
    constexpr Seconds rounding = 1e-12;
    if (time > rounding) carried.most_flows = std::max(carried.most_flows, state.flows);
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

  /// The time, at its capacity without faults, for what a link could carry between two dates.
  [[nodiscard]] Seconds open(LinkId link, Seconds from, Seconds to) const {
    return faults_ == nullptr ? to - from : faults_->time_at_full_bandwidth(link, from, to);
  }

  void close_interval() {
    for (const LinkId link : active_) {
      carry(link);
      LinkState& state = links_[link];
      Carried& carried = carried_[link];
      if (state.load > 0) {
        carried.load += state.load;
        carried.loads.resize(intervals_.count);
        const Seconds could = open(link, interval_ == 0 ? intervals_.from : end_of(interval_ - 1), end_of(interval_));
        carried.loads[interval_] = could > 0 ? state.load / could : 0;
      }
      state.load = 0;
      state.listed = state.flows > 0;
    }
    std::erase_if(active_, [&](LinkId link) { return !links_[link].listed; });
    ++interval_;
  }

  Cluster& cluster_;
  const FaultPlan* faults_;  // null: there were none
  const Intervals& intervals_;
  Seconds width_;
  std::vector<Carried>& carried_;
  MaxMin rates_;
  std::vector<LinkState> links_;
  std::vector<FlowState> flows_;      // by id
  std::vector<FlowId> flow_id_;       // by number of the flow; nobody: it is not under way
  std::vector<LinkId> active_;        // links that carry or have carried something in this interval
  std::vector<RateChange> recorded_;  // ascending; empty: links alone make the rates
  std::size_t next_change_ = 0;       // of recorded_
  std::size_t interval_ = 0;
  Seconds now_ = 0;
};

/// The links that carried something, the busiest first. Those that are equal but for rounding stand in the order of the
/// platform, whichever of them were simulated.
std::vector<LinkId> by_load(const std::vector<Carried>& carried, const Images& images) {
  std::vector<LinkId> links;
  for (LinkId link = 0; link < carried.size(); ++link) {
    if (carried[images.representative(link)].bytes > 0) links.push_back(link);
  }
  const auto load = [&](LinkId link) { return carried[images.representative(link)].utilisation(); };
  std::ranges::stable_sort(links, [&](LinkId a, LinkId b) { return load(a) > load(b); });
  constexpr double rounding = 1e-9;
  for (auto first = links.begin(); first != links.end();) {
    const double least = load(*first) * (1 - rounding);
    const auto end = std::find_if(first, links.end(), [&](LinkId link) { return load(link) < least; });
    std::sort(first, end);
    first = end;
  }
  return links;
}

/// `links`: all that carried something, the busiest first.
std::vector<LinkUtilisation::OfKind> sums_by_kind(const Cluster& cluster, const std::vector<Carried>& carried,
                                                  const Images& images, const std::vector<LinkId>& links,
                                                  const Intervals& intervals) {
  std::map<LinkKind, LinkUtilisation::OfKind> kinds;
  const std::vector<double> idle(intervals.count);
  for (const LinkId link : links) {
    const LinkId by = images.representative(link);
    const LinkKind kind = cluster.links()[link].kind;
    const double utilisation = carried[by].utilisation();
    LinkUtilisation::OfKind& sum =
        kinds.try_emplace(kind, LinkUtilisation::OfKind{kind, 0, 0, link, utilisation, idle, idle}).first->second;
    ++sum.links;
    sum.bytes += carried[by].bytes * images.flows(by);
    if (by != link || carried[by].loads.empty()) continue;
    for (std::size_t i = 0; i < intervals.count; ++i) {
      sum.busiest[i] = std::max(sum.busiest[i], carried[by].loads[i]);
      sum.mean[i] += carried[by].loads[i] * static_cast<double>(images.links(by));
    }
  }
  std::vector<LinkUtilisation::OfKind> list;
  for (auto& [kind, sum] : kinds) {
    for (double& load : sum.mean) load /= static_cast<double>(sum.links);
    list.push_back(std::move(sum));
  }
  return list;
}

/// Fills in the shares of the links that are listed.
void add_shares(Cluster& cluster, std::span<const Flow> flows, const FlowOwner& owner_of, const Images& images,
                std::vector<LinkUtilisation::OfLink>& listed) {
  std::map<LinkId, std::map<std::uint64_t, Bytes>> bytes;  // by the link that was simulated
  for (const LinkUtilisation::OfLink& one : listed) bytes.try_emplace(images.representative(one.link));
  for (const Flow& flow : flows) {
    if (!flow.counts) continue;
    for (const LinkId link : cluster.route(flow.source, flow.destination).links) {
      const auto found = bytes.find(link);
      if (found != bytes.end()) found->second[owner_of(flow)] += flow.bytes;
    }
  }
  for (LinkUtilisation::OfLink& one : listed) {
    const LinkId by = images.representative(one.link);
    for (const auto& [owner, carried] : bytes.at(by)) one.shares.push_back({owner, carried * images.flows(by)});
    std::ranges::stable_sort(one.shares, std::greater<>(), &LinkUtilisation::Share::bytes);
  }
}

}  // namespace

LinkUtilisation link_utilisation(Cluster& cluster, std::span<const Flow> flows, const Intervals& intervals,
                                 std::size_t most_links, const FlowOwner& owner_of, const FaultPlan* faults) {
  const Images images(cluster);
  std::vector<Carried> carried(cluster.links().size());
  for (const Flow& flow : flows) {
    if (!flow.counts) continue;
    for (const LinkId link : cluster.route(flow.source, flow.destination).links) carried[link].bytes += flow.bytes;
  }
  if (intervals.to > intervals.from) Meter(cluster, intervals, carried, faults).follow(flows);
  const std::vector<LinkId> links = by_load(carried, images);
  LinkUtilisation out{
      .links_used = links.size(), .kinds = sums_by_kind(cluster, carried, images, links, intervals), .links = {}};
  for (const LinkId link : std::span(links).first(std::min(most_links, links.size()))) {
    const LinkId by = images.representative(link);
    const Carried& one = carried[by];
    LinkUtilisation::OfLink& listed = out.links.emplace_back();
    listed.link = link;
    listed.bytes = one.bytes * images.flows(by);
    listed.busy = one.busy;
    listed.utilisation = one.utilisation();
    listed.while_busy = one.while_busy();
    listed.most_flows = one.most_flows * images.flows(by);
    listed.load = one.loads;
    listed.load.resize(intervals.count);
  }
  if (owner_of) add_shares(cluster, flows, owner_of, images, out.links);
  return out;
}

}  // namespace hcclsim::sim
