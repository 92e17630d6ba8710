#include "hccl/gradient/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "hccl/gradient/split.hpp"

namespace hcclsim::hccl {
namespace {

/// A trial must be estimated to shorten the step by this part to be worth a simulation.
constexpr double worthwhile = 0.005;
/// One cut is as good as more if its tail is longer by no more than this part.
constexpr double as_good = 0.02;
constexpr std::size_t most_trial_segments = 4;
/// Percentages of trials are multiples of these, by the number of segments: fine for one cut, coarser for more.
constexpr std::array<int, most_trial_segments + 1> percent_step{0, 0, 1, 5, 10};

/// Duration of an allreduce as start-up time and bytes over a bandwidth.
struct AffineCost {
  Seconds startup = 0;
  double seconds_per_byte = 0;
  [[nodiscard]] Seconds of(double bytes) const { return startup + seconds_per_byte * bytes; }
};

/// Fitted to the largest and the smallest segment; through the origin where they do not determine a line.
AffineCost fit_cost(const std::vector<SegmentTimes>& segments) {
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

/// Estimates splits of one step. Sums and search are those of the vendor's rule without its float32 roundings, which
/// move a cut by a gradient at most and are right in the simulation that follows.
class Estimator {
 public:
  explicit Estimator(const OverlappedStep& step) : step_(step), cost_(fit_cost(step.segments)) {
    sums_.reserve(step.sizes.size());
    double sum = 0;
    for (const Bytes size : step.sizes) sums_.push_back(sum += static_cast<double>(size));
    updates_.resize(step.sizes.size(), 0);
    std::partial_sum(step.updates.begin(), step.updates.end(), updates_.begin());
  }

  /// Time from bp_end to the end of the last allreduce and of the updates that follow it.
  [[nodiscard]] Seconds tail(std::span<const int> percentages) const {
    Seconds end = 0;         // of the allreduces so far
    Seconds update_end = 0;  // of their updates
    Seconds updated = 0;     // update times so far
    double sent = 0;
    int percent = 0;
    for (const int share : percentages) {
      percent += share;
      const std::size_t last = percent == 100 ? sums_.size() - 1 : cut_at(percent);
      if (sums_[last] <= sent) continue;
      end = std::max(end, step_.ready[last]) + cost_.of(sums_[last] - sent);
      sent = sums_[last];
      update_end = std::max(update_end, end) + updates_[last] - updated;
      updated = updates_[last];
    }
    return update_end - step_.backward_end;
  }

 private:
  [[nodiscard]] std::size_t cut_at(int percent) const {
    const double target = sums_.back() * percent / 100;
    const auto above = std::lower_bound(sums_.begin(), sums_.end(), target);
    const auto index = static_cast<std::size_t>(above - sums_.begin());
    return index > 0 && target - sums_[index - 1] <= sums_[index] - target ? index - 1 : index;
  }

  const OverlappedStep& step_;
  AffineCost cost_;
  std::vector<double> sums_;      // bytes up to each gradient
  std::vector<Seconds> updates_;  // update times up to each gradient
};

struct Trial {
  std::vector<int> percentages;
  Seconds tail = 0;
};

/// Tries all lists that begin with `list` and sum to 100 with `segments` entries.
void search(const Estimator& estimator, std::size_t segments, std::vector<int>& list, int left, Trial& best) {
  if (list.size() + 1 == segments) {
    list.push_back(left);
    const Seconds tail = estimator.tail(list);
    if (best.percentages.empty() || tail < best.tail) best = {list, tail};
    list.pop_back();
    return;
  }
  const int step = percent_step.at(segments);
  const int later_segments = static_cast<int>(segments - list.size()) - 1;
  for (int share = step; share <= left - later_segments * step; share += step) {
    list.push_back(share);
    search(estimator, segments, list, left - share, best);
    list.pop_back();
  }
}

std::string describe(SplitScenario scenario, const OverlappedStep& step) {
  constexpr double milliseconds = 1e3;
  const auto& segments = step.segments;
  const double after_ms = (segments.back().end - step.backward_end) * milliseconds;
  const std::size_t first_count = segments.size() - 1;  // all but the last are to be hidden
  const std::string hidden = first_count > 1 ? fmt::format("AR1 to AR{}", first_count) : "AR1";
  const std::string verb = first_count > 1 ? "end" : "ends";
  switch (scenario) {
    case SplitScenario::well_split:
      return fmt::format("AR{} ends {:.3f} ms after bp_end, and percentages are not expected to do better",
                         segments.size(), after_ms);
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
  const Estimator estimator(step);
  std::vector<Trial> trials;
  for (std::size_t segments = 2; segments <= std::min(most_trial_segments, step.sizes.size()); ++segments) {
    Trial best;
    std::vector<int> list;
    search(estimator, segments, list, 100, best);
    trials.push_back(std::move(best));
  }
  const Seconds step_end = std::max(step.segments.back().end, step.iteration_end);
  const Seconds target = step_end * (1 - worthwhile) - step.backward_end;
  const auto is_worthwhile = [&](const Trial& trial) { return trial.tail < target; };
  SplitAdvice advice;
  if (std::any_of(trials.begin(), trials.end(), is_worthwhile)) advice.scenario = classify(step, trials);
  advice.sentence = describe(advice.scenario, step);
  std::stable_sort(trials.begin(), trials.end(), [](const auto& a, const auto& b) { return a.tail < b.tail; });
  for (const Trial& trial : trials) {
    if (is_worthwhile(trial)) advice.trials.emplace_back(trial.percentages.begin(), trial.percentages.end());
  }
  return advice;
}

}  // namespace hcclsim::hccl
