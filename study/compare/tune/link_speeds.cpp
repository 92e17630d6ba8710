#include "study/compare/tune/link_speeds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "hccl/comm/communicator.hpp"
#include "study/platform/link_sources.hpp"
#include "study/run/split_search/simulations.hpp"

namespace hcclsim::study {
namespace {

/// Used speed and factors from half the low end to twice the high end, of the kinds of links that the run uses.
struct SpeedRange {
  BytesPerSecond used = 0;
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
};

std::map<sim::LinkKind, SpeedRange> ranges_of(Experiment& run) {
  std::map<sim::LinkKind, SpeedRange> ranges;
  for (const sim::LinkId id : links_between(run.cluster, hccl::world_communicator(run.npus).ranks)) {
    const sim::Link& link = run.cluster.links()[id];
    if (link.low == link.high) continue;
    SpeedRange& range = ranges[link.kind];
    range.used = std::max(range.used, link.bandwidth);
    range.low = std::min(range.low, link.low / link.bandwidth / 2);
    range.high = std::max(range.high, link.high / link.bandwidth * 2);
  }
  return ranges;
}

/// Factors from the low end to the high one, each the same multiple of the one before.
std::vector<double> factors_between(const SpeedRange& range, int parts) {
  std::vector<double> factors;
  for (int i = 0; i <= parts; ++i) {
    factors.push_back(range.low * std::pow(range.high / range.low, static_cast<double>(i) / parts));
  }
  return factors;
}

LinkSpeedsOfSplit speeds_of(sim::LinkKind kind, const SpeedRange& range, const Choice& choice, const Aim& aim,
                            const CostOverBandwidth& costs) {
  constexpr int tried = 200;
  LinkSpeedsOfSplit result{.kind = kind,
                           .used = range.used,
                           .from = range.low * range.used,
                           .to = range.high * range.used,
                           .lost = std::numeric_limits<double>::infinity()};
  double best_at = 1;
  for (const double factor : factors_between(range, tried)) {
    const Regret regret =
        regret_of(choice.cuts, choice.problem, costs.at(std::clamp(factor, costs.lowest(), costs.highest())), aim);
    const Seconds lost = regret.none() ? 0 : regret.time();
    if (lost >= result.lost) continue;
    result.lost = lost;
    best_at = factor;
  }
  result.least_lost_at = best_at * range.used;
  if (result.lost > 0) return result;
  for (const BandwidthInterval& interval : best_over_bandwidth(choice.problem, costs, aim, choice.cuts,
                                                               std::clamp(best_at, costs.lowest(), costs.highest()))) {
    if (interval.cuts != choice.cuts) continue;
    result.best.emplace_back(interval.from * range.used, interval.to * range.used);
  }
  return result;
}

}  // namespace

std::vector<LinkSpeedsOfSplit> link_speeds_of(const TuneSpec& spec, Experiment& run, const Choice& choice) {
  constexpr int simulated = 6;
  Aim aim = spec.search.aim;
  aim.most_segments = static_cast<std::uint32_t>(choice.cuts.size());
  const std::vector<Bytes> sizes = cost_sizes(CostModel::table, choice.problem);
  std::vector<LinkSpeedsOfSplit> all;
  for (const auto& [kind, range] : ranges_of(run)) {
    std::vector<std::pair<double, ChildOf<std::vector<CostPoint>>>> children;
    for (const double factor : factors_between(range, simulated)) {
      children.emplace_back(factor, start_costs(run, sizes, {factor, kind}));
    }
    std::vector<CostOverBandwidth::Point> points;
    for (auto& [factor, child] : children) points.push_back({factor, segment_cost(CostModel::table, child.result())});
    all.push_back(speeds_of(kind, range, choice, aim, CostOverBandwidth(std::move(points))));
  }
  return all;
}

}  // namespace hcclsim::study
