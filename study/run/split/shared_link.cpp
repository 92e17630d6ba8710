#include "study/run/split/shared_link.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "study/run/split/optimum.hpp"

namespace hcclsim::study {
namespace {

/// Up to two segments on a link that they share.
class SharedLink {
 public:
  explicit SharedLink(const SharedCost& cost) : cost_(cost) {}

  /// Lets time pass until a segment may begin at `ready` or later, and begins it.
  void begin(Seconds ready, Bytes bytes) {
    run_until(ready);
    while (in_flight_.size() == 2) run_to_next_event();
    in_flight_.push_back({now_ + cost_.start_up, cost_.flow.cost.cost(bytes)});
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

  const SharedCost& cost_;
  std::vector<Transfer> in_flight_;
  Seconds now_ = 0;
};

Split timed_on_shared_link(const SplitProblem& problem, const SharedCost& cost, Cuts cuts) {
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
Split climb(const SplitProblem& problem, const SharedCost& cost, Split split, std::uint32_t most_segments) {
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

Split try_all_on_shared_link(const SplitProblem& problem, const SharedCost& cost, std::uint32_t most_segments) {
  Split best{{}, never};
  for_all_splits(problem.size(), most_segments, [&](Cuts cuts) {
    Split split = timed_on_shared_link(problem, cost, std::move(cuts));
    if (split.finish < best.finish) best = std::move(split);
  });
  return best;
}

}  // namespace

Seconds finish_on_shared_link(const SplitProblem& problem, const SharedCost& cost, const Cuts& cuts) {
  SharedLink link(cost);
  std::uint32_t begin = 0;
  for (const std::uint32_t last : cuts) {
    link.begin(problem.ready(last + 1), problem.bytes(begin, last + 1));
    begin = last + 1;
  }
  return link.finish();
}

SharedCost SharedCost::of(const SampledCost& alone) {
  SharedCost shared;
  if (alone.cost.affine() != nullptr) {
    shared.start_up = alone.cost.affine()->alpha;
    shared.flow.cost = SegmentCost::of({0, alone.cost.affine()->beta});
  } else {
    shared.start_up = std::min_element(alone.points.begin(), alone.points.end(), [](const auto& a, const auto& b) {
                        return a.time < b.time;
                      })->time;
    shared.flow.cost.cost = [cost = alone.cost.cost, start_up = shared.start_up](Bytes bytes) {
      return cost(bytes) - start_up;
    };
  }
  for (const CostPoint& point : alone.points) {
    shared.flow.points.push_back({point.bytes, shared.flow.cost.cost(point.bytes)});
  }
  return shared;
}

Bracket bracket_on_shared_link(const SplitProblem& problem, const SampledCost& alone, std::uint32_t most_segments) {
  constexpr std::uint32_t most_tried = 12;
  const SharedCost cost = SharedCost::of(alone);
  // The first of the segments that a bound counts has its start-up before any of them flows.
  std::vector<AffineCost> minorants = affine_minorants(cost.flow.points);
  for (AffineCost& minorant : minorants) minorant.alpha += cost.start_up;
  const Seconds bound = lower_bound(problem, minorants, Objective::communication).time;
  if (problem.size() <= most_tried) return {bound, try_all_on_shared_link(problem, cost, most_segments), true};
  Split best{{}, never};
  for (const Split& start : best_splits(problem, alone.cost, most_segments, Objective::communication)) {
    Split split = climb(problem, cost, timed_on_shared_link(problem, cost, start.cuts), most_segments);
    if (split.finish < best.finish) best = std::move(split);
  }
  return {bound, std::move(best), false};
}

}  // namespace hcclsim::study
