#include "study/split/two_streams.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "study/split/optimum.hpp"

namespace hcclsim::study {
namespace {

constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

/// Ends of both streams after the first gradients, and how it came to that.
struct State {
  std::array<Seconds, 2> ends{0, 0};
  std::uint32_t gradients = 0;  // of the state before
  std::uint32_t number = 0;     // of that state among those of its gradients
  std::uint8_t stream = 0;      // that took the rest
};

/// Keeps the states of which none is as early as another on both streams.
void keep_best(std::vector<State>& states) {
  std::sort(states.begin(), states.end(), [](const State& a, const State& b) { return a.ends < b.ends; });
  Seconds least = never;
  std::erase_if(states, [&](const State& state) {
    if (state.ends[1] >= least) return true;
    least = state.ends[1];
    return false;
  });
}

Seconds finish_of(const State& state) { return std::max(state.ends[0], state.ends[1]); }

/// The problem is NP-hard (PARTITION, where all gradients are ready at once): states of one number of segments, of 32
/// bytes each.
constexpr std::size_t most_states = 4'000'000;

/// By number of gradients, the states that matter after one more segment, on either stream, and end by `limit`.
std::vector<std::vector<State>> one_segment_more(const SplitProblem& problem, const std::array<AffineCost, 2>& costs,
                                                 const std::vector<std::vector<State>>& before, Seconds limit) {
  std::vector<std::vector<State>> states(before.size());
  std::size_t kept = 0;
  for (std::uint32_t b = 1; b < before.size(); ++b) {
    for (std::uint32_t a = 0; a < b; ++a) {
      for (std::uint32_t number = 0; number < before[a].size(); ++number) {
        for (std::uint8_t stream = 0; stream < 2; ++stream) {
          State state{before[a][number].ends, a, number, stream};
          Seconds& end = state.ends.at(stream);
          end = std::max(end, problem.ready(b)) + costs.at(stream)(problem.bytes(a, b));
          if (end > limit && !same_time(end, limit)) continue;
          states[b].push_back(state);
          if (kept + states[b].size() > most_states) {
            bad_input("split",
                      "two streams on links of their own: {} ways to divide {} gradients are still open, too many to "
                      "compare (gradients that are ready at once make it so); give fewer segments or one stream",
                      most_states, b);
          }
        }
      }
    }
    keep_best(states[b]);
    kept += states[b].size();
  }
  return states;
}

/// Up to two segments on a link that they share.
class SharedLink {
 public:
  explicit SharedLink(const AffineCost& cost) : cost_(cost) {}

  /// Lets time pass until a segment may begin at `ready` or later, and begins it.
  void begin(Seconds ready, Bytes bytes) {
    run_until(ready);
    while (in_flight_.size() == 2) run_to_next_event();
    in_flight_.push_back({now_ + cost_.alpha, cost_.beta * static_cast<double>(bytes)});
  }

  /// When everything has ended.
  Seconds finish() {
    while (!in_flight_.empty()) run_to_next_event();
    return now_;
  }

 private:
  struct Transfer {
    Seconds flows_from = 0;
    Seconds left = 0;  // of the time on a link of its own
  };

  [[nodiscard]] double flowing() const {
    return static_cast<double>(std::count_if(in_flight_.begin(), in_flight_.end(),
                                             [this](const Transfer& t) { return t.flows_from <= now_; }));
  }

  /// When the next transfer ends or begins to flow.
  [[nodiscard]] Seconds next_event() const {
    const double sharing = flowing();
    Seconds next = never;
    for (const Transfer& transfer : in_flight_) {
      const Seconds at = transfer.flows_from > now_ ? transfer.flows_from : now_ + transfer.left * sharing;
      next = std::min(next, at);
    }
    return next;
  }

  void run_to_next_event() { pass_to(next_event()); }

  void run_until(Seconds date) {
    while (!in_flight_.empty() && next_event() <= date) run_to_next_event();
    if (date > now_) pass_to(date);
  }

  void pass_to(Seconds date) {
    const double sharing = flowing();
    const Seconds passed = date - now_;
    bool ended = false;
    for (Transfer& transfer : in_flight_) {
      if (transfer.flows_from > now_) continue;
      // What would end now by the same sum has ended, whatever the rounding.
      const bool last_bytes = now_ + transfer.left * sharing <= date;
      transfer.left = last_bytes ? 0 : transfer.left - passed / sharing;
      ended = ended || last_bytes;
    }
    if (ended) {
      std::erase_if(in_flight_, [this](const Transfer& t) { return t.flows_from <= now_ && t.left <= 0; });
    }
    now_ = date;
  }

  AffineCost cost_;
  std::vector<Transfer> in_flight_;
  Seconds now_ = 0;
};

Split timed_on_shared_link(const SplitProblem& problem, const AffineCost& cost, Cuts cuts) {
  const Seconds finish = finish_on_shared_link(problem, cost, cuts);
  return {std::move(cuts), finish};
}

/// The same cuts with one moved by one gradient, removed or added.
std::vector<Cuts> neighbours(const Cuts& cuts, std::uint32_t most_segments) {
  std::vector<Cuts> all;
  const std::uint32_t end = cuts.back();
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    Cuts removed = cuts;
    removed.erase(removed.begin() + static_cast<std::ptrdiff_t>(i));
    all.push_back(std::move(removed));
    const std::uint32_t low = i == 0 ? 0 : cuts[i - 1] + 1;
    for (std::uint32_t to = low; to < cuts[i + 1]; ++to) {
      if (to == cuts[i]) continue;
      Cuts moved = cuts;
      moved[i] = to;
      all.push_back(std::move(moved));
    }
  }
  if (cuts.size() >= most_segments) return all;
  for (std::uint32_t at = 0; at < end; ++at) {
    const auto place = std::lower_bound(cuts.begin(), cuts.end(), at);
    if (*place == at) continue;
    Cuts added = cuts;
    added.insert(added.begin() + (place - cuts.begin()), at);
    all.push_back(std::move(added));
  }
  return all;
}

/// Goes to the best neighbour while that is earlier.
Split climb(const SplitProblem& problem, const AffineCost& cost, Split split, std::uint32_t most_segments) {
  for (bool better = true; better;) {
    better = false;
    for (Cuts& cuts : neighbours(split.cuts, most_segments)) {
      Split other = timed_on_shared_link(problem, cost, std::move(cuts));
      if (other.finish >= split.finish || same_time(other.finish, split.finish)) continue;
      split = std::move(other);
      better = true;
      break;
    }
  }
  return split;
}

Split try_all_on_shared_link(const SplitProblem& problem, const AffineCost& cost, std::uint32_t most_segments) {
  Split best{{}, never};
  for_all_splits(problem.size(), most_segments, [&](Cuts cuts) {
    Split split = timed_on_shared_link(problem, cost, std::move(cuts));
    if (split.finish < best.finish) best = std::move(split);
  });
  return best;
}

}  // namespace

StreamedSplit best_split_on_two_links(const SplitProblem& problem, const std::array<AffineCost, 2>& costs,
                                      std::uint32_t most_segments) {
  const std::uint32_t n = problem.size();
  const auto alone = [&](const AffineCost& cost) { return best_splits(problem, cost, most_segments).back().finish; };
  const Seconds limit = std::min(alone(costs[0]), alone(costs[1]));
  // states[k][b]: of the first b gradients in k segments
  std::vector<std::vector<std::vector<State>>> states(1);
  states[0].resize(n + 1);
  states[0][0].push_back({});
  std::size_t best_row = 0;
  const State* best = nullptr;
  for (std::size_t k = 1; k <= std::min(most_segments, n); ++k) {
    states.push_back(one_segment_more(problem, costs, states.back(), limit));
    for (const State& state : states[k][n]) {
      if (best != nullptr && (finish_of(state) >= finish_of(*best) || same_time(finish_of(state), finish_of(*best)))) {
        continue;
      }
      best = &state;
      best_row = k;
    }
  }
  if (best == nullptr) internal_error("two streams end later than one");
  StreamedSplit split{{}, {}, finish_of(*best)};
  std::uint32_t b = n;
  for (std::size_t k = best_row; b > 0; --k) {
    split.cuts.push_back(b - 1);
    split.streams.push_back(best->stream);
    b = best->gradients;
    best = &states[k - 1][b][best->number];
  }
  std::reverse(split.cuts.begin(), split.cuts.end());
  std::reverse(split.streams.begin(), split.streams.end());
  return split;
}

Seconds finish_on_shared_link(const SplitProblem& problem, const AffineCost& cost, const Cuts& cuts) {
  SharedLink link(cost);
  std::uint32_t begin = 0;
  for (const std::uint32_t last : cuts) {
    link.begin(problem.ready(last + 1), problem.bytes(begin, last + 1));
    begin = last + 1;
  }
  return link.finish();
}

Bracket bracket_on_shared_link(const SplitProblem& problem, const AffineCost& cost, std::uint32_t most_segments) {
  constexpr std::uint32_t most_tried = 12;
  const Seconds bound = lower_bound(problem, cost).finish;
  if (problem.size() <= most_tried) return {bound, try_all_on_shared_link(problem, cost, most_segments), true};
  Split best{{}, never};
  for (const Split& start : best_splits(problem, cost, most_segments)) {
    Split split = climb(problem, cost, timed_on_shared_link(problem, cost, start.cuts), most_segments);
    if (split.finish < best.finish) best = std::move(split);
  }
  return {bound, std::move(best), false};
}

}  // namespace hcclsim::study
