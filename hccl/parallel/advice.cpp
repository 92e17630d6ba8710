#include "hccl/parallel/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "hccl/parallel/split.hpp"

namespace hcclsim::hccl {
namespace {

/// A trial must be estimated to shorten the step by this part to be worth a simulation.
constexpr double worthwhile = 0.005;
/// One cut is as good as more if its tail is longer by no more than this part.
constexpr double as_good = 0.02;
constexpr std::size_t most_trial_segments = 4;
/// Percentages of trials are multiples of a half; those of the most segments are whole.
constexpr int units = 200;
constexpr std::array<int, most_trial_segments + 1> unit_step{0, 0, 1, 1, 2};

double percent_of(int unit) { return 100.0 * unit / units; }

/// Duration of an allreduce as start-up time and bytes over a bandwidth.
struct AffineCost {
  Seconds startup = 0;
  double seconds_per_byte = 0;
  [[nodiscard]] Seconds of(double bytes) const { return startup + seconds_per_byte * bytes; }
};

/// Fitted to the largest and the smallest segment that did not wait for a late rank, if there are such; through the
/// origin where they do not determine a line.
AffineCost fit_cost(std::vector<SegmentTimes> segments) {
  const auto waited = [](const SegmentTimes& segment) { return segment.waited; };
  if (!std::all_of(segments.begin(), segments.end(), waited)) std::erase_if(segments, waited);
  const auto [small, large] = std::minmax_element(segments.begin(), segments.end(),
                                                  [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const Seconds large_time = large->end - large->start;
  const Seconds small_time = small->end - small->start;
  AffineCost cost;
  if (large->bytes == 0) return {large_time, 0};
  cost.seconds_per_byte = large_time / static_cast<double>(large->bytes);
  if (small->bytes == large->bytes) return cost;
  const double slope = (large_time - small_time) / static_cast<double>(large->bytes - small->bytes);
  const Seconds startup = small_time - slope * static_cast<double>(small->bytes);
  return slope > 0 && startup >= 0 ? AffineCost{startup, slope} : cost;
}

/// A place where a split can cut: after a gradient that the vendor's rule finds for some share of the bytes.
struct SplitCut {
  int unit = 0;            ///< share of the bytes
  double bytes = 0;        ///< of all gradients up to here
  Seconds ready = 0;       ///< of the last of them
  Seconds update_sum = 0;  ///< of all of them
};

/// How far a split has been sent when its first segments are over.
struct Progress {
  double bytes = 0;
  Seconds end = 0;         ///< of the allreduces so far
  Seconds update_end = 0;  ///< of their updates
  Seconds update_sum = 0;
};

struct Trial {
  std::vector<double> percentages;
  Seconds tail = 0;  ///< time from bp_end to the end of the last allreduce and of the updates that follow it
};

/// Estimates splits of one step and finds the best of each number of segments. Sums and search are those of the
/// vendor's rule without its float32 roundings, which move a cut by a gradient at most and are right in the simulation
/// that follows. Several shares can mean the same cut: it is tried once, so the search is over gradients, not over
/// numbers.
class Search {
 public:
  explicit Search(const OverlappedStep& step) : step_(step), cost_(fit_cost(step.segments)) {
    double bytes = 0;
    Seconds updates = 0;
    for (std::size_t i = 0; i < step.sizes.size(); ++i) {
      bytes += static_cast<double>(step.sizes[i]);
      if (!step.updates.empty()) updates += step.updates[i];
      gradients_.push_back({0, bytes, step.ready[i], updates});
    }
  }

  /// The best split into that number of segments; its percentages are empty if there is none.
  Trial best(std::size_t segments) {
    find_cuts(unit_step.at(segments));
    best_.tail = std::numeric_limits<Seconds>::infinity();
    best_units_.clear();
    units_.clear();
    extend({}, 0, segments);
    Trial trial{{}, best_.tail};
    int before = 0;
    for (const int unit : best_units_) {
      trial.percentages.push_back(percent_of(unit - before));
      before = unit;
    }
    return trial;
  }

 private:
  /// The different cuts at multiples of `step`. Of the shares that lead to one gradient the roundest is kept.
  void find_cuts(int step) {
    std::vector<double> percentages;
    for (int unit = step; unit < units; unit += step) percentages.push_back(percent_of(unit));
    cuts_.clear();
    std::size_t next = 0;  // gradients before this one have been cut after
    int unit = 0;
    for (const std::size_t index : cuts_at(percentages, step_.sizes)) {
      unit += step;
      if (index + 1 == gradients_.size()) break;  // nothing is left for another segment
      if (index >= next) {
        cuts_.push_back(gradients_[index]);
        cuts_.back().unit = unit;
        next = index + 1;
      } else if (index + 1 == next && roundness(unit) > roundness(cuts_.back().unit)) {
        cuts_.back().unit = unit;
      }
    }
  }

  /// Tens before fives before whole percentages before halves.
  static int roundness(int unit) {
    int round = 0;
    for (const int divisor : {2, 10, 20}) round += unit % divisor == 0 ? 1 : 0;
    return round;
  }

  [[nodiscard]] Progress send(const Progress& before, const SplitCut& cut) const {
    Progress after{cut.bytes, std::max(before.end, cut.ready) + cost_.of(cut.bytes - before.bytes), 0, cut.update_sum};
    after.update_end = std::max(before.update_end, after.end) + cut.update_sum - before.update_sum;
    return after;
  }

  /// Tries all ways to cut what is left, from the cut with number `first` on, into that number of segments.
  void extend(const Progress& before, std::size_t first, std::size_t segments) {
    if (segments == 1) {
      const Seconds tail = send(before, gradients_.back()).update_end - step_.backward_end;
      if (tail >= best_.tail) return;
      best_.tail = tail;
      best_units_ = units_;
      best_units_.push_back(units);
      return;
    }
    for (std::size_t i = first; i < cuts_.size(); ++i) {
      const Progress after = send(before, cuts_[i]);
      // The rest cannot end earlier than in one allreduce at once; later cuts end later still.
      const Seconds soonest = after.end + cost_.of(gradients_.back().bytes - after.bytes);
      if (soonest - step_.backward_end >= best_.tail) continue;
      units_.push_back(cuts_[i].unit);
      extend(after, i + 1, segments - 1);
      units_.pop_back();
    }
  }

  const OverlappedStep& step_;
  AffineCost cost_;
  std::vector<SplitCut> gradients_;  // a cut after every gradient; the last is the end
  std::vector<SplitCut> cuts_;
  std::vector<int> units_;  // of the split that is being built
  std::vector<int> best_units_;
  Trial best_;
};

std::string describe(SplitScenario scenario, const OverlappedStep& step) {
  constexpr double milliseconds = 1e3;
  const auto& segments = step.segments;
  const double after_ms = (segments.back().end - step.backward_end) * milliseconds;
  const std::size_t first_count = segments.size() - 1;  // all but the last are to be hidden
  const std::string hidden = first_count > 1 ? fmt::format("AR1 to AR{}", first_count) : "AR1";
  const std::string verb = first_count > 1 ? "end" : "ends";
  switch (scenario) {
    case SplitScenario::well_split:
      return fmt::format(
          "AR{} ends {:.3f} ms after bp_end, and no split in up to {} parts by whole percentages is expected to do "
          "better",
          segments.size(), after_ms, most_trial_segments);
    case SplitScenario::cut_later:
      return fmt::format("{} {} within FP/BP and AR{} is long ({:.3f} ms after bp_end): move the cut backward", hidden,
                         verb, segments.size(), after_ms);
    case SplitScenario::cut_earlier:
      return fmt::format("{} {} {:.3f} ms after bp_end: move the cut forward to hide it within FP/BP", hidden, verb,
                         (segments[first_count - 1].end - step.backward_end) * milliseconds);
    case SplitScenario::more_segments:
      if (segments.size() == 1) {
        return fmt::format("one allreduce of all gradients ends {:.3f} ms after bp_end: cut it within FP/BP", after_ms);
      }
      return fmt::format("{} {} {:.3f} ms after bp_end, which one cut cannot hide: use more segments within FP/BP",
                         hidden, verb, (segments[first_count - 1].end - step.backward_end) * milliseconds);
  }
  return {};
}

/// The guide's scenario of a step whose best trials, by number of segments, are these.
SplitScenario classify(const OverlappedStep& step, std::span<const Trial> trials) {
  if (step.segments.size() == 1) return SplitScenario::more_segments;
  const bool first_hidden = step.segments[step.segments.size() - 2].end <= step.backward_end;
  if (first_hidden) return SplitScenario::cut_later;
  const Seconds one_cut = trials.front().tail;
  const Seconds best = std::min_element(trials.begin(), trials.end(), [](const auto& a, const auto& b) {
                         return a.tail < b.tail;
                       })->tail;
  return one_cut <= best * (1 + as_good) ? SplitScenario::cut_earlier : SplitScenario::more_segments;
}

}  // namespace

SplitAdvice advise_split(const OverlappedStep& step) {
  Search search(step);
  std::vector<Trial> trials;
  for (std::size_t segments = 2; segments <= most_trial_segments; ++segments) {
    Trial best = search.best(segments);
    if (!best.percentages.empty()) trials.push_back(std::move(best));
  }
  const Seconds step_end = std::max(step.segments.back().end, step.iteration_end);
  const Seconds target = step_end * (1 - worthwhile) - step.backward_end;
  const auto is_worthwhile = [&](const Trial& trial) { return trial.tail < target; };
  SplitAdvice advice;
  if (std::any_of(trials.begin(), trials.end(), is_worthwhile)) advice.scenario = classify(step, trials);
  advice.sentence = describe(advice.scenario, step);
  const auto late = std::find_if(step.segments.begin(), step.segments.end(), [](const auto& s) { return s.waited; });
  if (late != step.segments.end()) {
    advice.scenario = SplitScenario::well_split;
    advice.sentence = fmt::format("AR{} mostly waits for a rank that is late, which moving the cut does not mend",
                                  late - step.segments.begin() + 1);
  }
  std::stable_sort(trials.begin(), trials.end(), [](const auto& a, const auto& b) { return a.tail < b.tail; });
  for (const Trial& trial : trials) {
    if (is_worthwhile(trial)) advice.trials.push_back(trial.percentages);
  }
  return advice;
}

}  // namespace hcclsim::hccl
