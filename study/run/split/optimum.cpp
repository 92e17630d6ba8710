#include "study/run/split/optimum.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "study/run/split/bound.hpp"
#include "study/run/split/earliest_ends.hpp"

namespace hcclsim::study {
namespace {

/// Relative error that sums of thousands of terms may have.
constexpr double rounding = 1e-12;

/// A little later, so that sums in another order are not taken for longer.
Seconds allowing_for_rounding(Seconds time) { return time * (1 + rounding / 2); }

/// Costs of straight parts where they begin and end, of sizes that segments can have.
std::vector<CostPoint> corners(const SplitProblem& problem, const SegmentCost& cost) {
  Bytes smallest = problem.total();
  for (std::uint32_t i = 0; i < problem.size(); ++i) smallest = std::min(smallest, problem.bytes(i, i + 1));
  std::map<Bytes, Seconds> least;
  const auto add = [&least](Bytes bytes, Seconds time) {
    const auto [found, is_new] = least.try_emplace(bytes, time);
    if (!is_new) found->second = std::min(found->second, time);
  };
  for (std::size_t i = 0; i < cost.parts.size(); ++i) {
    const CostPart& part = cost.parts[i];
    const Bytes from = std::max(part.from, smallest);
    const Bytes to = i + 1 < cost.parts.size() ? std::min(cost.parts[i + 1].from, problem.total()) : problem.total();
    if (from > to) continue;
    add(from, part.line(from));
    add(to, part.line(to));
  }
  std::vector<CostPoint> points;
  for (const auto& [bytes, time] : least) points.push_back({bytes, time});
  return points;
}

/// What is known of the shortest step: that it is longer than `below`, and no longer than that of `found`.
struct Range {
  Seconds below = 0;
  Split found;
};

/// Narrows the range until rounding is left of it. `try_limit(limit)` learns whether there is a step of at most
/// `limit`, and lowers what was found or raises what the range is above.
template <typename TryLimit>
void narrow(const Range& range, const SplitProblem& problem, const SearchProgress& progress,
            const TryLimit& try_limit) {
  const double close =
      rounding * std::max(problem.size(), std::uint32_t{16});  // the error of a sum grows with its terms
  const Seconds& found = range.found.step;
  // Bounds are good: the shortest step is sought close to what none can beat, then further and further off.
  double off = 1e-5;
  while (found - range.below > close * found) {
    const Seconds middle = (range.below + found) / 2;
    const Seconds limit = std::min(middle, range.below * (1 + off));
    if (progress) progress(range.below, found);
    off = try_limit(limit) ? 1 : 8 * off;
  }
}

/// The best splits for each number of segments up to the most, of a problem without rest: beside a long one, such as
/// the wait for a batch, what the splits differ by would be lost in rounding.
class BestSplits {
 public:
  BestSplits(const SplitProblem& problem, const SegmentCost& cost, std::uint32_t most_segments, Objective objective,
             const SearchProgress& progress)
      : problem_(problem), cost_(cost), ends_(problem, cost), objective_(objective), progress_(progress) {
    if (most_segments == 0) bad_input("split", "at least one segment is needed");
    if (objective == Objective::communication) return;
    const Range any = of_any_number();
    const Rows rows = ends_.rows(most_segments);
    for (std::uint32_t k = 1; k <= most_segments; ++k) {
      ranges_.push_back({std::max(soonest(rows[k].end.back()), any.below), ends_.split_of(rows, k)});
    }
    try_limit(allowing_for_rounding(any.found.step), most_segments);
  }

  /// With at most k segments.
  Split best(std::uint32_t k) {
    if (objective_ == Objective::communication) {
      const Rows rows = ends_.rows(k);
      const Seconds finish = allowing_for_rounding(rows[k].end.back());
      std::uint32_t fewest = 1;
      while (rows[fewest].end.back() > finish) ++fewest;
      return with_time_to_spare(rows, fewest, never);
    }
    narrow(ranges_[k - 1], problem_, progress_, [&](Seconds limit) { return try_limit(limit, k); });
    const Seconds limit = allowing_for_rounding(ranges_[k - 1].found.step);
    const Rows rows = ends_.rows_until_kept(k, limit);
    return with_time_to_spare(rows, static_cast<std::uint32_t>(rows.size()) - 1, limit);
  }

 private:
  /// Less than any step whose communication ends then at the earliest: what follows the last gradient comes after it.
  [[nodiscard]] Seconds soonest(Seconds finish) const {
    return (finish + problem_.followers_from(problem_.size() - 1)) * (1 - rounding);
  }

  /// Of the splits of so many segments that end as early as the rows say and keep the limit one whose segments, but the
  /// last, may take longer and it still does: by the longest time of those that are tried, parts of its end.
  [[nodiscard]] Split with_time_to_spare(const Rows& rows, std::uint32_t segments, Seconds limit) const {
    const Seconds finish = rows[segments].end.back();
    constexpr double least_part = 1e-5;
    for (double part = 1.0 / 16; segments > 1 && part > least_part; part /= 2) {
      const SegmentCost slow = cost_.plus(finish * part);
      const Rows spared = EarliestEnds(problem_, slow).rows_with_last(segments, limit, ends_);
      if (spared.back().end.back() <= finish) return ends_.slackest_split(spared, segments, limit);
    }
    return ends_.slackest_split(rows, segments, limit);
  }

  /// Of splits of any number of segments, which take a row instead of k.
  [[nodiscard]] Range of_any_number() const {
    Range range{0, *ends_.any_number(never)};
    range.below = soonest(range.found.finish);
    if (!cost_.parts.empty()) {
      const LowerBound bound = lower_bound(problem_, affine_minorants(corners(problem_, cost_)), Objective::step);
      range.below = std::max(range.below, bound.time * (1 - rounding));
    }
    narrow(range, problem_, progress_, [&](Seconds limit) {
      std::optional<Split> split = ends_.any_number(limit);
      if (split.has_value()) {
        range.found = *std::move(split);
      } else {
        range.below = limit;
      }
      return range.below < limit;
    });
    return range;
  }

  /// Learns from the rows for a limit; returns whether it can be kept with at most k segments.
  bool try_limit(Seconds limit, std::uint32_t k) {
    const Rows rows = ends_.rows_until_kept(k, limit);
    const std::size_t segments = rows.size() - 1;
    const bool kept = rows.back().end.back() < never;
    // The last row tells of its number of segments and more, those before that they are too few.
    for (std::size_t j = 1; j < segments + (kept ? 0 : 1); ++j) {
      ranges_[j - 1].below = std::max(ranges_[j - 1].below, limit);
    }
    if (!kept) return false;
    const Split split = ends_.split_of(rows, segments);
    for (std::size_t j = segments; j <= ranges_.size(); ++j) {
      if (split.step < ranges_[j - 1].found.step) ranges_[j - 1].found = split;
    }
    return true;
  }

  const SplitProblem& problem_;
  const SegmentCost& cost_;
  EarliestEnds ends_;
  Objective objective_;
  const SearchProgress& progress_;
  std::vector<Range> ranges_;  // for the step
};

/// Bounds and steps of a problem without rest as those of the one with it.
SearchProgress with_rest(const SearchProgress& progress, Seconds rest) {
  if (!progress) return {};
  return [&progress, rest](Seconds bound, Seconds best) { progress(bound + rest, best + rest); };
}

}  // namespace

Split best_split(const SplitProblem& problem, const SegmentCost& cost) {
  return *EarliestEnds(problem, cost).any_number(never);
}

Split best_split(const SplitProblem& problem, const SegmentCost& cost, std::uint32_t most_segments, Objective objective,
                 const SearchProgress& progress) {
  const SplitProblem bare = problem.without_rest();
  const SearchProgress progress_with_rest = with_rest(progress, problem.rest());
  Split split = BestSplits(bare, cost, most_segments, objective, progress_with_rest).best(most_segments);
  split.step += problem.rest();
  return split;
}

std::vector<Split> best_splits(const SplitProblem& problem, const SegmentCost& cost, std::uint32_t most_segments,
                               Objective objective, const SearchProgress& progress) {
  const SplitProblem bare = problem.without_rest();
  const SearchProgress progress_with_rest = with_rest(progress, problem.rest());
  BestSplits search(bare, cost, most_segments, objective, progress_with_rest);
  std::vector<Split> splits(most_segments);
  for (std::uint32_t k = most_segments; k > 0; --k) {
    splits[k - 1] = search.best(k);
    // The same for all numbers from its own on.
    while (k > 1 && splits[k - 1].cuts.size() < k) {
      splits[k - 2] = splits[k - 1];
      --k;
    }
  }
  for (Split& split : splits) split.step += problem.rest();
  return splits;
}

Split brute_force(const SplitProblem& problem, const Cost& cost, Objective objective,
                  std::optional<std::uint32_t> most_segments) {
  constexpr std::uint32_t most_gradients = 24;
  const std::uint32_t n = problem.size();
  if (n > most_gradients) bad_input("split", "{} gradients; all splits can be tried of up to {}", n, most_gradients);
  Split best{{}, never, never};
  for_all_splits(n, most_segments, [&](Cuts cuts) {
    Split split = timed(problem, cost, std::move(cuts));
    const Seconds time = split.time(objective);
    const Seconds least = best.time(objective);
    const bool same = !best.cuts.empty() && same_time(time, least);
    if (same ? split.cuts.size() < best.cuts.size() : time < least) best = std::move(split);
  });
  return best;
}

bool same_time(Seconds a, Seconds b) { return std::abs(a - b) <= rounding * std::max(std::abs(a), std::abs(b)); }

}  // namespace hcclsim::study
