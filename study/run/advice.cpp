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
  Advice(const OwnStep& own, const SplitProblem& problem, const Cost& cost, std::span<const Trial> trials)
      : own_(own), problem_(problem), cost_(cost), trials_(trials), count_(own.cuts.size()) {}

  [[nodiscard]] SplitAdvice none() const {
    std::string sentence =
        fmt::format("AR{} {}, and no split of up to {} segments was found whose step is shorter by {:g} % or more",
                    count_, ends(count_), Aim{}.most_segments, worthwhile * 100);
    const std::string best = trials_.empty() ? "" : in_ms(trials_.front().step_time);
    if (!trials_.empty() && saved_by(trials_.front()) > 0 && best != in_ms(own_.step.step)) {
      sentence += fmt::format("; the best takes {} ms", best);
    }
    return {SplitScenario::none, sentence, false};
  }

  [[nodiscard]] SplitAdvice towards_best() const {
    if (behind_allreduces() > hang_over() && !shortens_communication(trials_.front())) return updates_are_long();
    const bool hidden = count_ > 1 && own_.step.segments[count_ - 2].end <= own_.step.backward_end;
    return hidden ? hidden_towards(trials_.front().by_idx) : late_towards(trials_.front().by_idx);
  }

 private:
  [[nodiscard]] Seconds hang_over() const {
    return std::max(0.0, own_.step.segments.back().end - own_.step.backward_end);
  }
  /// Of checks and updates when all is reduced.
  [[nodiscard]] Seconds behind_allreduces() const { return own_.step.phases.tail.value_or(0) - hang_over(); }
  /// Whether most of what a trial saves is time until the last allreduce ends; the rest is of what is behind it.
  [[nodiscard]] bool shortens_communication(const Trial& trial) const {
    return hang_over() - std::max(0.0, trial.hang_over) >= saved_by(trial) / 2;
  }

  [[nodiscard]] SplitAdvice updates_are_long() const {
    constexpr Seconds shown = 0.5e-6;
    const bool checked = behind_allreduces() > own_.step.phases.last_update.value_or(0) + shown;
    return {SplitScenario::none,
            fmt::format("{} {}, and the {}updates after it take {} ms: with other cuts more of them run within FP/BP",
                        count_ > 1 ? fmt::format("AR{}", count_) : "one allreduce of all gradients", ends(count_),
                        checked ? "checks and " : "", in_ms(behind_allreduces())),
            true};
  }

  /// All but the last allreduce are hidden.
  [[nodiscard]] SplitAdvice hidden_towards(const Cuts& best) const {
    const std::string firsts = count_ > 2 ? fmt::format("AR1 to AR{} end", count_ - 1) : "AR1 ends";
    if (before_last(best) > before_last(own_.cuts)) {
      return {SplitScenario::cut_later,
              fmt::format("{} within FP/BP and AR{} is long ({} ms after bp_end): move the {}cut backward{}", firsts,
                          count_, after_backward(count_), count_ > 2 || best.size() > 2 ? "last " : "",
                          with_segments(best, own_.cuts)),
              true};
    }
    return {SplitScenario::none,
            fmt::format("{} within FP/BP and AR{} {}: other cuts shorten the step", firsts, count_, ends(count_)),
            true};
  }

  /// The last allreduce but one, or the only one, ends after the backward pass.
  [[nodiscard]] SplitAdvice late_towards(const Cuts& best) const {
    const auto is_late = [&](const SimulatedSegment& segment) { return segment.end > own_.step.backward_end; };
    const std::vector<SimulatedSegment>& segments = own_.step.segments;
    const auto late =
        static_cast<std::size_t>(std::find_if(segments.begin(), segments.end(), is_late) - segments.begin()) + 1;
    if (best.size() < count_) {
      return {SplitScenario::none,
              fmt::format("{}: {} segment{} instead of {} shorten{} the step", late_ones(late), best.size(),
                          best.size() == 1 ? "" : "s", count_, best.size() == 1 ? "s" : ""),
              true};
    }
    if (late == 1 && moving_hides_first()) {
      return {SplitScenario::cut_earlier,
              count_ == 1 ? fmt::format("one allreduce of all gradients {}: cut it to hide AR1 within FP/BP", ends(1))
                          : fmt::format("AR1 {}: move the cut forward to hide AR1 within FP/BP{}", ends(1),
                                        with_segments(best, own_.cuts)),
              true};
    }
    if (count_ == 1) {
      return {SplitScenario::more_segments,
              fmt::format("one allreduce of all gradients {}: cut it into {} segments", ends(1), best.size()), true};
    }
    const std::uint32_t end = own_.cuts.front() + 1;
    const double share = static_cast<double>(problem_.bytes(0, end)) / static_cast<double>(problem_.total());
    constexpr double most = 0.5;
    if (best.size() > count_ && late == 1 && share > most) {
      return {
          SplitScenario::more_segments,
          fmt::format("AR1, which has {:.1f} % of the data, {}: use {} segments", share * 100, ends(1), best.size()),
          true};
    }
    if (best.size() > count_ && !some_cut_hides_first(problem_, cost_)) {
      return {SplitScenario::more_segments,
              fmt::format("AR{} {}, and no single cut hides AR1: use {} segments", late, ends(late), best.size()),
              true};
    }
    return {SplitScenario::none, fmt::format("AR{} {}: other cuts shorten the step", late, ends(late)), true};
  }

  /// Whether with no more segments, of one with two, an earlier cut hides AR1 and gains at least half of what the best
  /// trial does.
  [[nodiscard]] bool moving_hides_first() const {
    const std::size_t number = std::max<std::size_t>(count_, 2);
    const auto moved = std::ranges::find_if(
        trials_, [&](const Trial& trial) { return trial.by_idx.size() > 1 && trial.by_idx.size() <= number; });
    return moved != trials_.end() && saved_by(*moved) >= saved_by(trials_.front()) / 2 &&
           moved->by_idx.front() < own_.cuts.front() &&
           timeline(problem_, cost_, moved->by_idx).front().end <= problem_.backward_end();
  }

  [[nodiscard]] Seconds saved_by(const Trial& trial) const { return own_.step.step - trial.step_time; }
  /// "ends 0.194 ms after bp_end"
  [[nodiscard]] std::string ends(std::size_t number) const {
    const bool hidden = own_.step.segments[number - 1].end <= own_.step.backward_end;
    return hidden ? "ends within FP/BP" : fmt::format("ends {} ms after bp_end", after_backward(number));
  }
  /// "AR3 ends 0.194 ms after bp_end", "AR3 to AR9 end after bp_end, AR9 1.320 ms"
  [[nodiscard]] std::string late_ones(std::size_t first) const {
    if (first == count_) return fmt::format("AR{} {}", first, ends(first));
    return fmt::format("AR{} to AR{} end after bp_end, AR{} {} ms", first, count_, count_, after_backward(count_));
  }
  [[nodiscard]] std::string after_backward(std::size_t number) const {
    return in_ms(own_.step.segments[number - 1].end - own_.step.backward_end);
  }

  const OwnStep& own_;
  const SplitProblem& problem_;
  const Cost& cost_;
  std::span<const Trial> trials_;
  std::size_t count_;  // of segments
};

}  // namespace

SplitAdvice advise_split(const OwnStep& own, const SplitProblem& problem, const Cost& cost,
                         std::span<const Trial> trials, const std::string& late_rank) {
  const std::vector<SimulatedSegment>& segments = own.step.segments;
  const auto late = std::find_if(segments.begin(), segments.end(), [&](const SimulatedSegment& segment) {
    return segment.waited && segment.end - segment.start >= own.step.step * worthwhile;
  });
  const Advice advice(own, problem, cost, trials);
  const bool shortens = !trials.empty() && trials.front().step_time <= own.step.step * (1 - worthwhile);
  if (late != segments.end()) {
    return {
        SplitScenario::none,
        fmt::format("AR{} mostly waits for {}: that is the cause, and no cut mends it{}", late - segments.begin() + 1,
                    late_rank, shortens ? "; what cuts can do beside it, `hcclsim tune` tells" : ""),
        false};
  }
  return shortens ? advice.towards_best() : advice.none();
}

}  // namespace hcclsim::study
