#include "study/run/advice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hcclsim::study {
namespace {

std::string in_ms(Seconds time) { return fmt::format("{:.3f}", time * 1e3); }

/// Whether the first of two segments can end within the backward pass.
bool some_cut_hides_first(const SplitProblem& problem, const Cost& cost) {
  for (std::uint32_t count = 1; count < problem.size(); ++count) {
    if (problem.ready(count) + cost(problem.bytes(0, count)) <= problem.backward_end()) return true;
  }
  return false;
}

/// Gradients before the last segment.
std::uint32_t before_last(const Cuts& cuts) { return cuts.size() > 1 ? cuts[cuts.size() - 2] + 1 : 0; }

std::string with_segments(const Cuts& best, const Cuts& own) {
  if (best.size() == own.size()) return {};
  return fmt::format(" and use {} segments", best.size());
}

class Advice {
 public:
  Advice(const OwnStep& own, const SplitProblem& problem, const Cost& cost)
      : own_(own), problem_(problem), cost_(cost), count_(own.cuts.size()) {}

  [[nodiscard]] SplitAdvice none(const std::optional<Trial>& best) const {
    std::string sentence = fmt::format(
        "AR{} ends {} ms after bp_end, and no split of up to {} segments was found whose step is shorter by {:g} % or "
        "more",
        count_, after_backward(count_), Aim{}.most_segments, worthwhile * 100);
    if (best.has_value() && best->step_time < own_.step.step) {
      sentence += fmt::format("; the best takes {} ms", in_ms(best->step_time));
    }
    return {SplitScenario::none, sentence, false};
  }

  [[nodiscard]] SplitAdvice towards(const Cuts& best) const {
    if (count_ == 1) {
      const bool hides = some_cut_hides_first(problem_, cost_);
      return {hides ? SplitScenario::cut_earlier : SplitScenario::more_segments,
              fmt::format("one allreduce of all gradients ends {} ms after bp_end: cut it{}", after_backward(1),
                          hides ? " to hide AR1 within FP/BP" : ""),
              true};
    }
    return own_.step.segments[count_ - 2].end <= own_.step.backward_end ? hidden_towards(best) : late_towards(best);
  }

 private:
  /// All but the last allreduce are hidden.
  [[nodiscard]] SplitAdvice hidden_towards(const Cuts& best) const {
    const std::string what = fmt::format("{} {} within FP/BP and AR{} is long ({} ms after bp_end)", first_ones(),
                                         count_ > 2 ? "end" : "ends", count_, after_backward(count_));
    if (before_last(best) > before_last(own_.cuts)) {
      return {SplitScenario::cut_later,
              fmt::format("{}: move the {}cut backward{}", what, count_ > 2 || best.size() > 2 ? "last " : "",
                          with_segments(best, own_.cuts)),
              true};
    }
    return {SplitScenario::none,
            fmt::format("{} {} within FP/BP; what is long is behind them, AR{} or updates: other cuts shorten it",
                        first_ones(), count_ > 2 ? "end" : "ends", count_),
            true};
  }

  /// The last allreduce but one ends after the backward pass.
  [[nodiscard]] SplitAdvice late_towards(const Cuts& best) const {
    const auto is_late = [&](const SimulatedSegment& segment) { return segment.end > own_.step.backward_end; };
    const std::vector<SimulatedSegment>& segments = own_.step.segments;
    const auto late =
        static_cast<std::size_t>(std::find_if(segments.begin(), segments.end(), is_late) - segments.begin()) + 1;
    const std::string what = fmt::format("AR{} ends {} ms after bp_end", late, after_backward(late));
    if (best.size() < own_.cuts.size()) {
      return {SplitScenario::none,
              fmt::format("{}: {} segment{} instead of {} shorten{} the step", what, best.size(),
                          best.size() == 1 ? "" : "s", own_.cuts.size(), best.size() == 1 ? "s" : ""),
              true};
    }
    if (best.size() > own_.cuts.size() && !some_cut_hides_first(problem_, cost_)) {
      return {SplitScenario::more_segments,
              fmt::format("{}, and no single cut hides AR1: use {} segments", what, best.size()), true};
    }
    const bool hides_first = timeline(problem_, cost_, best).front().end <= problem_.backward_end();
    if (late == 1 && best.front() < own_.cuts.front() && hides_first) {
      return {SplitScenario::cut_earlier,
              fmt::format("{}: move the cut forward to hide AR1 within FP/BP{}", what, with_segments(best, own_.cuts)),
              true};
    }
    return {SplitScenario::none, fmt::format("{}: other cuts shorten the step", what), true};
  }

  /// "AR1 to AR3": all but the last.
  [[nodiscard]] std::string first_ones() const { return count_ > 2 ? fmt::format("AR1 to AR{}", count_ - 1) : "AR1"; }
  [[nodiscard]] std::string after_backward(std::size_t number) const {
    return in_ms(own_.step.segments[number - 1].end - own_.step.backward_end);
  }

  const OwnStep& own_;
  const SplitProblem& problem_;
  const Cost& cost_;
  std::size_t count_;  // of segments
};

}  // namespace

SplitAdvice advise_split(const OwnStep& own, const SplitProblem& problem, const Cost& cost,
                         const std::optional<Trial>& best, const std::string& late_rank) {
  const std::vector<SimulatedSegment>& segments = own.step.segments;
  const auto late = std::find_if(segments.begin(), segments.end(), [&](const SimulatedSegment& segment) {
    return segment.waited && segment.end - segment.start >= own.step.step * worthwhile;
  });
  const Advice advice(own, problem, cost);
  const bool shortens = best.has_value() && best->step_time <= own.step.step * (1 - worthwhile);
  if (late != segments.end()) {
    return {
        SplitScenario::none,
        fmt::format("AR{} mostly waits for {}: that is the cause, and no cut mends it{}", late - segments.begin() + 1,
                    late_rank, shortens ? "; what cuts can do beside it, `hcclsim tune` tells" : ""),
        false};
  }
  return shortens ? advice.towards(best->by_idx) : advice.none(best);
}

}  // namespace hcclsim::study
