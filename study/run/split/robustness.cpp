#include "study/run/split/robustness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "study/run/split/optimum.hpp"

namespace hcclsim::study {
namespace {

AffineCost between(const AffineCost& a, const AffineCost& b, double weight) {
  return {std::lerp(a.alpha, b.alpha, weight), std::lerp(a.beta, b.beta, weight)};
}

/// Straight where both are.
std::vector<CostPart> between(const std::vector<CostPart>& a, const std::vector<CostPart>& b, double weight) {
  std::vector<CostPart> parts;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    parts.push_back({std::max(a[i].from, b[j].from), between(a[i].line, b[j].line, weight)});
    const Bytes next_a = i + 1 < a.size() ? a[i + 1].from : std::numeric_limits<Bytes>::max();
    const Bytes next_b = j + 1 < b.size() ? b[j + 1].from : std::numeric_limits<Bytes>::max();
    i += next_a <= next_b ? 1 : 0;
    j += next_b <= next_a ? 1 : 0;
  }
  return parts;
}

/// Finds the intervals of one problem.
class BandwidthSearch {
 public:
  BandwidthSearch(const SplitProblem& problem, const CostOverBandwidth& costs, const Aim& aim)
      : problem_(problem), costs_(costs), aim_(aim) {}

  /// Intervals from `from` to `to`, which may be lower, in the order in which they are passed; the first one is that of
  /// `first` if it is the best at `from`.
  std::vector<BandwidthInterval> cover(double from, double to, const Cuts& first) {
    steps_ = steps_between(from, to);
    std::vector<BandwidthInterval> intervals;
    std::set<Cuts> candidates;
    if (is_best(first, from)) candidates = {first};
    double at = from;
    while (true) {
      if (candidates.empty()) candidates = candidates_at(at);
      const Reach farthest = farthest_of(candidates, at);
      intervals.push_back({from, farthest.good, farthest.cuts});
      if (farthest.good == to) return intervals;
      from = farthest.good;
      at = farthest.bad;
      candidates.clear();
    }
  }

 private:
  struct Reach {
    Cuts cuts;
    double good = 0;  ///< the split is the best up to here …
    double bad = 0;   ///< … and not here, as close as can be told
  };

  /// From the first to the last, both included; also for a range without length.
  static std::vector<double> steps_between(double from, double to) {
    constexpr int count = 100;
    if (from == to) return {to};
    std::vector<double> steps;
    for (int i = 1; i < count; ++i) steps.push_back(from * std::pow(to / from, static_cast<double>(i) / count));
    steps.push_back(to);
    return steps;
  }

  /// Whether `step` lies behind `at` on the way.
  [[nodiscard]] bool is_behind(double step, double at) const { return steps_.back() > at ? step > at : step < at; }

  const std::vector<Split>& optima(double factor) {
    const auto [found, is_new] = optima_.try_emplace(factor);
    if (is_new) found->second = best_splits(problem_, costs_.at(factor), aim_.most_segments, aim_.objective);
    return found->second;
  }

  bool is_best(const Cuts& cuts, double factor) {
    const Split split = timed(problem_, costs_.at(factor).cost, cuts);
    return same_time(split.time(aim_.objective), optima(factor).back().time(aim_.objective));
  }

  /// Splits that are the best there, with each number of segments, and what is the best further on.
  std::set<Cuts> candidates_at(double at) {
    std::set<Cuts> all;
    for (const Split& split : optima(at)) all.insert(split.cuts);
    for (const double step : steps_) {
      if (is_behind(step, at)) all.insert(optima(step).back().cuts);
    }
    std::erase_if(all, [&](const Cuts& cuts) { return !is_best(cuts, at); });
    return all;
  }

  /// The candidate, all of them the best at `at`, that stays so farthest.
  Reach farthest_of(const std::set<Cuts>& candidates, double at) {
    std::vector<Reach> farthest;
    for (const Cuts& cuts : candidates) {
      Reach reach = steps_passed(cuts, at);
      if (!farthest.empty() && is_behind(reach.good, farthest.front().good)) farthest.clear();
      if (farthest.empty() || reach.good == farthest.front().good) farthest.push_back(std::move(reach));
      if (farthest.front().good == steps_.back()) return farthest.front();
    }
    for (Reach& reach : farthest) bisect(reach);
    return *std::max_element(farthest.begin(), farthest.end(),
                             [&](const Reach& a, const Reach& b) { return is_behind(b.good, a.good); });
  }

  /// The last step up to which the split stays the best, and the next one.
  Reach steps_passed(const Cuts& cuts, double at) {
    Reach reach{cuts, at, at};
    for (const double step : steps_) {
      if (!is_behind(step, at)) continue;
      reach.bad = step;
      if (!is_best(cuts, step)) break;
      reach.good = step;
    }
    return reach;
  }

  void bisect(Reach& reach) {
    constexpr double close = 1e-9;
    while (std::abs(reach.bad / reach.good - 1) > close) {
      const double middle = std::sqrt(reach.good * reach.bad);
      (is_best(reach.cuts, middle) ? reach.good : reach.bad) = middle;
    }
  }

  const SplitProblem& problem_;
  const CostOverBandwidth& costs_;
  Aim aim_;
  std::vector<double> steps_;
  std::map<double, std::vector<Split>> optima_;
};

}  // namespace

bool Regret::none() const { return same_time(end, best_end); }

Regret regret_of(const Cuts& cuts, const SplitProblem& problem, const SegmentCost& cost, const Aim& aim) {
  const Split best = best_split(problem, cost, aim.most_segments, aim.objective);
  return {timed(problem, cost.cost, cuts).time(aim.objective), best.time(aim.objective), best.cuts};
}

JitterOutcome under_jitter(const Cuts& cuts, const SegmentCost& cost, const Aim& aim, std::uint32_t draws,
                           const std::function<SplitProblem(std::uint32_t)>& problem) {
  JitterOutcome outcome{.draws = draws};
  for (std::uint32_t draw = 0; draw < draws; ++draw) {
    const Regret regret = regret_of(cuts, problem(draw), cost, aim);
    if (regret.none()) {
      ++outcome.optimal;
      continue;
    }
    outcome.mean_regret += regret.time() / draws;
    outcome.worst_regret = std::max(outcome.worst_regret, regret.time());
    outcome.worst_fraction = std::max(outcome.worst_fraction, regret.fraction());
  }
  return outcome;
}

CostOverBandwidth::CostOverBandwidth(std::vector<Point> points) : points_(std::move(points)) {
  if (points_.size() < 2) bad_input("split", "costs at {} bandwidths; at least two are needed", points_.size());
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const double before = i == 0 ? 0 : points_[i - 1].factor;
    if (!(points_[i].factor > before))
      bad_input("split", "bandwidth factors must ascend from above 0; {} follows {}", points_[i].factor, before);
    if (points_[i].cost.parts.empty() == points_[0].cost.parts.empty()) continue;
    bad_input("split", "costs over the bandwidth must all be of straight parts, or none");
  }
}

SegmentCost CostOverBandwidth::at(double factor) const {
  const auto behind = std::find_if(points_.begin() + 1, points_.end() - 1,
                                   [factor](const Point& point) { return factor <= point.factor; });
  const Point& a = *(behind - 1);
  const Point& b = *behind;
  if (factor == a.factor) return a.cost;
  if (factor == b.factor) return b.cost;
  const double weight = (1 / factor - 1 / a.factor) / (1 / b.factor - 1 / a.factor);
  if (!a.cost.parts.empty()) return SegmentCost(between(a.cost.parts, b.cost.parts, weight));
  return {[&a, &b, weight](Bytes bytes) { return std::lerp(a.cost.cost(bytes), b.cost.cost(bytes), weight); }};
}

std::vector<BandwidthInterval> best_over_bandwidth(const SplitProblem& problem, const CostOverBandwidth& costs,
                                                   const Aim& aim, const Cuts& chosen, double at) {
  BandwidthSearch search(problem, costs, aim);
  std::vector<BandwidthInterval> all = search.cover(at, costs.lowest(), chosen);
  std::vector<BandwidthInterval> up = search.cover(at, costs.highest(), chosen);
  std::reverse(all.begin(), all.end());
  for (BandwidthInterval& interval : all) std::swap(interval.from, interval.to);
  // Both ways begin with the same split where that is the chosen one: one interval.
  if (all.back().cuts == up.front().cuts) {
    all.back().to = up.front().to;
    up.erase(up.begin());
  }
  all.insert(all.end(), up.begin(), up.end());
  std::erase_if(all, [](const BandwidthInterval& interval) { return interval.from == interval.to; });
  return all;
}

}  // namespace hcclsim::study
