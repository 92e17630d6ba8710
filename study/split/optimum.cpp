#include "study/split/optimum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// Relative error that sums of thousands of terms may have.
constexpr double rounding = 1e-12;

constexpr std::uint32_t as_before = std::numeric_limits<std::uint32_t>::max();

/// Earliest ends of the first b gradients, b = 0 … n, and the predecessor that gives each; as_before: the row before
/// has the same end with fewer segments.
struct Row {
  std::vector<Seconds> end;
  std::vector<std::uint32_t> from;

  explicit Row(std::uint32_t gradients) : end(gradients + 1, never), from(gradients + 1, as_before) { end[0] = 0; }
};

/// Candidates a behind p(b), with ascending F[a] − β·S_a.
class Candidates {
 public:
  explicit Candidates(std::uint32_t most) : items_(most) {}

  void push(std::uint32_t a, double value) {
    while (last_ > first_ && items_[last_ - 1].value > value) --last_;
    items_[last_++] = {a, value};
  }
  void drop_up_to(std::uint32_t a) {
    while (first_ < last_ && items_[first_].a <= a) ++first_;
  }
  [[nodiscard]] bool empty() const { return first_ == last_; }
  [[nodiscard]] std::uint32_t best() const { return items_[first_].a; }

 private:
  struct Item {
    std::uint32_t a = 0;
    double value = 0;
  };
  std::vector<Item> items_;  // every a is pushed once, so the positions never run out
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

/// Betters the ends of `to` by splits whose last segment follows a split of `source`; they may be the same row. The
/// ends of `source` ascend.
void extend(const SplitProblem& problem, const AffineCost& cost, const Row& source, Row& to) {
  const std::uint32_t n = problem.size();
  Candidates candidates(n);
  std::uint32_t waiting = 0;  // p(b): the last a whose end is not behind r_b
  const auto consider = [&](std::uint32_t a, std::uint32_t b) {
    const Seconds end = std::max(source.end[a], problem.ready(b)) + cost(problem.bytes(a, b));
    if (end < to.end[b]) {
      to.end[b] = end;
      to.from[b] = a;
    }
  };
  for (std::uint32_t b = 1; b <= n; ++b) {
    const std::uint32_t newest = b - 1;
    if (source.end[newest] < never) {
      candidates.push(newest, source.end[newest] - cost.beta * static_cast<double>(problem.bytes_before(newest)));
    }
    while (waiting + 1 < b && source.end[waiting + 1] <= problem.ready(b)) ++waiting;
    candidates.drop_up_to(waiting);
    consider(waiting, b);
    if (!candidates.empty()) consider(candidates.best(), b);
  }
}

void extend(const SplitProblem& problem, const Cost& cost, const Row& source, Row& to) {
  for (std::uint32_t b = 1; b <= problem.size(); ++b) {
    for (std::uint32_t a = 0; a < b; ++a) {
      if (source.end[a] == never) continue;
      const Seconds end = std::max(source.end[a], problem.ready(b)) + cost(problem.bytes(a, b));
      if (end < to.end[b]) {
        to.end[b] = end;
        to.from[b] = a;
      }
    }
  }
}

/// Cuts of the split that gives the last end of a row that was extended from itself.
Cuts trace_back(const Row& row) {
  Cuts cuts;
  for (auto b = static_cast<std::uint32_t>(row.end.size() - 1); b > 0; b = row.from[b]) cuts.push_back(b - 1);
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

/// The same for row number `row` of rows that were each extended from the one before.
Cuts trace_back(const std::vector<Row>& rows, std::size_t row) {
  Cuts cuts;
  for (auto b = static_cast<std::uint32_t>(rows[row].end.size() - 1); b > 0; --row) {
    while (rows[row].from[b] == as_before) --row;
    cuts.push_back(b - 1);
    b = rows[row].from[b];
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

/// Of the splits that end when row number `row` says, that of Objective::time_segments.
template <typename AnyCost>
Cuts latest_cuts(const SplitProblem& problem, const AnyCost& cost, const std::vector<Row>& rows, std::size_t row) {
  const Seconds finish = rows[row].end.back();
  std::size_t segments = 1;
  while (!same_time(rows[segments].end.back(), finish)) ++segments;
  // Sums in another order may differ in their last digits.
  Seconds deadline = finish * (1 + rounding / 2);
  Cuts cuts;
  for (std::uint32_t b = problem.size(); b > 0; --segments) {
    cuts.push_back(b - 1);
    const Row& before = rows[segments - 1];
    std::uint32_t a = 0;
    while (a < b && std::max(before.end[a], problem.ready(b)) + cost(problem.bytes(a, b)) > deadline) ++a;
    if (a == b) internal_error("no split ends at {} s", finish);
    deadline -= cost(problem.bytes(a, b));
    b = a;
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

template <typename AnyCost>
Split find_best(const SplitProblem& problem, const AnyCost& cost) {
  Row row(problem.size());
  extend(problem, cost, row, row);
  return timed(problem, cost, trace_back(row));
}

template <typename AnyCost>
std::vector<Split> find_best(const SplitProblem& problem, const AnyCost& cost, std::uint32_t most_segments,
                             Objective objective) {
  std::vector<Row> rows;
  rows.reserve(most_segments + 1);
  rows.emplace_back(problem.size());
  std::vector<Split> splits;
  for (std::uint32_t k = 1; k <= most_segments; ++k) {
    Row next = rows.back();
    std::fill(next.from.begin(), next.from.end(), as_before);
    extend(problem, cost, rows.back(), next);
    rows.push_back(std::move(next));
    if (objective == Objective::time) {
      splits.push_back(timed(problem, cost, trace_back(rows, k)));
    } else if (k > 1 && same_time(rows[k].end.back(), rows[k - 1].end.back())) {
      splits.push_back(splits.back());
    } else {
      splits.push_back(timed(problem, cost, latest_cuts(problem, cost, rows, k)));
    }
  }
  return splits;
}

}  // namespace

Split best_split(const SplitProblem& problem, const SegmentCost& cost) {
  return cost.affine.has_value() ? find_best(problem, *cost.affine) : find_best(problem, cost.cost);
}

std::vector<Split> best_splits(const SplitProblem& problem, const SegmentCost& cost, std::uint32_t most_segments,
                               Objective objective) {
  return cost.affine.has_value() ? find_best(problem, *cost.affine, most_segments, objective)
                                 : find_best(problem, cost.cost, most_segments, objective);
}

Split brute_force(const SplitProblem& problem, const Cost& cost, std::optional<std::uint32_t> most_segments) {
  constexpr std::uint32_t most_gradients = 24;
  const std::uint32_t n = problem.size();
  if (n > most_gradients) bad_input("split", "{} gradients; all splits can be tried of up to {}", n, most_gradients);
  Split best{{}, never};
  for_all_splits(n, most_segments, [&](Cuts cuts) {
    Split split = timed(problem, cost, std::move(cuts));
    const bool same = !best.cuts.empty() && same_time(split.finish, best.finish);
    if (same ? split.cuts.size() < best.cuts.size() : split.finish < best.finish) best = std::move(split);
  });
  return best;
}

bool same_time(Seconds a, Seconds b) { return std::abs(a - b) <= rounding * std::max(std::abs(a), std::abs(b)); }

}  // namespace hcclsim::study
