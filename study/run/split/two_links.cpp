#include "study/run/split/two_links.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "study/run/split/optimum.hpp"

namespace hcclsim::study {
namespace {

using Ends = std::array<Seconds, 2>;
using Lines = std::array<AffineCost, 2>;

/// Ends of both streams after the first gradients, and how it came to that.
struct State {
  Ends ends{0, 0};
  std::uint32_t gradients = 0;  // of the state before
  std::uint32_t number = 0;     // of that state among those of its gradients
  std::uint8_t stream = 0;      // that took the rest
  Seconds bound = 0;            // what follows cannot end before
};

Seconds later(const Ends& ends) { return std::max(ends[0], ends[1]); }

/// The earliest end of `bytes` on links that are free from `free` on and cost these lines, if they may be divided
/// freely: all on one of them, or on both until one date.
Seconds divided_freely(Bytes bytes, const Ends& free, const Lines& lines) {
  const auto load = static_cast<double>(bytes);
  Seconds least = never;
  for (std::size_t link = 0; link < 2; ++link) {
    least = std::min(least, free.at(link) + lines.at(link).alpha + lines.at(link).beta * load);
  }
  const Ends started{free[0] + lines[0].alpha, free[1] + lines[1].alpha};
  if (lines[0].beta <= 0 || lines[1].beta <= 0) return std::min(least, later(started));
  const double speed = 1 / lines[0].beta + 1 / lines[1].beta;
  const Seconds together = (load + started[0] / lines[0].beta + started[1] / lines[1].beta) / speed;
  return std::min(least, std::max(together, later(started)));
}

/// The line that is highest at that number of bytes.
AffineCost highest_at(const std::vector<AffineCost>& lines, Bytes bytes) {
  return *std::max_element(lines.begin(), lines.end(),
                           [bytes](const AffineCost& a, const AffineCost& b) { return a(bytes) < b(bytes); });
}

/// Follows states of one more segment at a time.
class StateSearch {
 public:
  /// Looks for an end by `limit`, following `most_states` states after each number of gradients and segments.
  StateSearch(const SplitProblem& problem, std::array<const SampledCost*, 2> costs, Seconds limit,
              std::size_t most_states)
      : problem_(problem), costs_(costs), limit_(limit), most_states_(most_states), earliest_(problem.size() + 1) {
    std::array<std::vector<AffineCost>, 2> lines;
    for (std::size_t link = 0; link < 2; ++link) lines.at(link) = affine_minorants(costs.at(link)->points);
    for (std::uint32_t b = 0; b < problem.size(); ++b) {
      // Half of what is left is what a link gets of it, more or less.
      const Bytes left = problem.bytes(b, problem.size()) / 2;
      lines_.push_back({highest_at(lines[0], left), highest_at(lines[1], left)});
    }
    rows_.resize(1);
    rows_[0].resize(problem.size() + 1);
    rows_[0][0].push_back({});
  }

  /// None if there is no such end.
  std::optional<TwoLinkSplit> run(std::uint32_t most_segments) {
    const std::uint32_t n = problem_.size();
    std::optional<TwoLinkSplit> best;
    for (std::uint32_t segments = 1; segments <= std::min(most_segments, n); ++segments) {
      add_row();
      for (const State& state : rows_[segments][n]) {
        const Seconds finish = later(state.ends);
        if (best.has_value() && (finish >= best->finish || same_time(finish, best->finish))) continue;
        best = traced_back(state, segments);
        limit_ = std::min(limit_, finish);
      }
    }
    return best;
  }

  /// Whether states were left out that might have led to an earlier end.
  [[nodiscard]] bool left_some_out() const { return left_some_out_; }

 private:
  [[nodiscard]] bool too_late(Seconds end) const { return end > limit_ && !same_time(end, limit_); }

  void add_row() {
    const std::vector<std::vector<State>>& before = rows_.back();
    std::vector<std::vector<State>> row(before.size());
    for (std::uint32_t b = 1; b <= problem_.size(); ++b) {
      for (std::uint32_t a = 0; a < b; ++a) extend(before[a], a, b, row[b]);
      keep_best(row[b], earliest_[b]);
    }
    rows_.push_back(std::move(row));
  }

  /// Adds the states that follow those of the first `a` gradients with one segment up to the first `b`.
  void extend(const std::vector<State>& from, std::uint32_t a, std::uint32_t b, std::vector<State>& to) {
    const Bytes bytes = problem_.bytes(a, b);
    const Ends times{costs_[0]->cost.cost(bytes), costs_[1]->cost.cost(bytes)};
    for (std::uint32_t number = 0; number < from.size(); ++number) {
      const State& source = from[number];
      if (too_late(source.bound)) continue;
      for (std::uint8_t stream = 0; stream < 2; ++stream) {
        // Free streams of one cost are the same.
        if (stream == 1 && alike() && source.ends[0] == source.ends[1]) continue;
        State state{source.ends, a, number, stream};
        Seconds& end = state.ends.at(stream);
        end = std::max(end, problem_.ready(b)) + times.at(stream);
        state.bound = later(state.ends);
        if (b < problem_.size()) {
          for (Seconds& free : state.ends) free = std::max(free, problem_.ready(b + 1));
          state.bound =
              std::max(state.bound, divided_freely(problem_.bytes(b, problem_.size()), state.ends, lines_.at(b)));
        }
        if (!too_late(state.bound)) to.push_back(state);
      }
    }
  }

  [[nodiscard]] bool alike() const { return costs_[0] == costs_[1]; }

  /// The ends of a state as they are compared: of streams of one cost the earlier one first.
  [[nodiscard]] Ends compared(const State& state) const {
    Ends ends = state.ends;
    if (alike() && ends[0] > ends[1]) std::swap(ends[0], ends[1]);
    return ends;
  }

  /// Keeps the states of which none, also of fewer segments, is as early as another on both streams; `earliest` are
  /// the ends of those so far, by the first stream, and becomes those of all.
  void keep_best(std::vector<State>& states, std::vector<Ends>& earliest) {
    std::sort(states.begin(), states.end(),
              [this](const State& a, const State& b) { return compared(a) < compared(b); });
    Seconds least = never;
    auto fewer = earliest.begin();
    std::erase_if(states, [&](const State& state) {
      const Ends ends = compared(state);
      for (; fewer != earliest.end() && (*fewer)[0] <= ends[0]; ++fewer) least = std::min(least, (*fewer)[1]);
      if (ends[1] >= least) return true;
      least = ends[1];
      return false;
    });
    if (states.size() > most_states_) {
      left_some_out_ = true;
      std::sort(states.begin(), states.end(), [](const State& a, const State& b) { return a.bound < b.bound; });
      states.resize(most_states_);
    }
    for (const State& state : states) earliest.push_back(compared(state));
    std::sort(earliest.begin(), earliest.end());
  }

  [[nodiscard]] TwoLinkSplit traced_back(const State& last, std::size_t segments) const {
    TwoLinkSplit split{.cuts = {}, .streams = {}, .finish = later(last.ends)};
    const State* state = &last;
    for (std::uint32_t b = problem_.size(); b > 0;) {
      split.cuts.push_back(b - 1);
      split.streams.push_back(state->stream);
      b = state->gradients;
      state = &rows_[--segments][b][state->number];
    }
    std::reverse(split.cuts.begin(), split.cuts.end());
    std::reverse(split.streams.begin(), split.streams.end());
    return split;
  }

  const SplitProblem& problem_;
  std::array<const SampledCost*, 2> costs_;
  Seconds limit_;
  std::size_t most_states_;
  std::vector<Lines> lines_;                           // by number of gradients that are sent: below the costs
  std::vector<std::vector<std::vector<State>>> rows_;  // by number of segments and gradients
  std::vector<std::vector<Ends>> earliest_;            // by number of gradients
  bool left_some_out_ = false;
};

/// The best split on the better one of the two.
TwoLinkSplit on_one_of_them(const SplitProblem& problem, const SampledCost& first, const SampledCost& second,
                            std::uint32_t most_segments) {
  Split on_first = best_split(problem, first.cost, most_segments, Objective::communication);
  Split on_second = best_split(problem, second.cost, most_segments, Objective::communication);
  const std::uint8_t stream = on_first.finish <= on_second.finish ? 0 : 1;
  Split& split = stream == 0 ? on_first : on_second;
  std::vector<std::uint8_t> streams(split.cuts.size(), stream);
  return {.cuts = std::move(split.cuts), .streams = std::move(streams), .finish = split.finish};
}

}  // namespace

Seconds bound_on_two_links(const SplitProblem& problem, const SampledCost& first, const SampledCost& second) {
  const std::array<std::vector<AffineCost>, 2> lines{affine_minorants(first.points), affine_minorants(second.points)};
  Seconds bound = 0;
  for (std::uint32_t i = 0; i < problem.size(); ++i) {
    const Bytes left = problem.bytes(i, problem.size());
    const Seconds ready = problem.ready(i + 1);
    for (const AffineCost& one : lines[0]) {
      for (const AffineCost& other : lines[1]) {
        bound = std::max(bound, divided_freely(left, {ready, ready}, {one, other}));
      }
    }
    // The gradient itself stays whole.
    const Bytes alone = problem.bytes(i, i + 1);
    bound = std::max(bound, ready + std::min(highest_at(lines[0], alone)(alone), highest_at(lines[1], alone)(alone)));
  }
  return bound;
}

TwoLinkSplit best_split_on_two_links(const SplitProblem& problem, const SampledCost& first, const SampledCost& second,
                                     std::uint32_t most_segments) {
  // Each search starts from the end that the one before has found; most problems need the first only.
  constexpr std::array<std::size_t, 2> most_states{16, 128};
  TwoLinkSplit best = on_one_of_them(problem, first, second, most_segments);
  for (const std::size_t states : most_states) {
    StateSearch search(problem, {&first, &second}, best.finish, states);
    std::optional<TwoLinkSplit> found = search.run(most_segments);
    best.exact = !search.left_some_out();
    // Not later than the one before; of equal ends a search that left nothing out has found the fewest segments.
    if (found.has_value() && (best.exact || found->finish < best.finish)) {
      found->exact = best.exact;
      best = *std::move(found);
    }
    if (best.exact) break;
  }
  const Seconds bound = best.exact ? best.finish : bound_on_two_links(problem, first, second);
  best.bound = std::min(bound, best.finish);
  best.exact = same_time(best.bound, best.finish);
  return best;
}

}  // namespace hcclsim::study
