#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "study/run/split/problem.hpp"

/// Splits that no other split beats.
///
/// With F[b] the earliest end of the first b gradients,
///
///     F[b] = min over a < b of max(F[a], r_b) + c(a, b),   F[0] = 0.
///
/// It holds for any cost, since the end of a segment grows with the end of what was before it; for at most k segments
/// F_j[b] = min(F_{j−1}[b], min over a of max(F_{j−1}[a], r_b) + c(a, b)).
///
/// A step ends in time for a limit T if every segment (a, b] leaves time for what follows its gradients and those after
/// it, V_a: its end is at most T − V_a. That is a deadline of the segment alone. So the same recurrence, without the
/// segments that miss their deadline, tells whether T can be kept. The least such T lies above a lower bound and below
/// that of any split; the range between is halved until it is closer than 10^-12 for each gradient.
///
/// Where the cost is alpha + β·bytes with β ≥ 0, the predecessors of b are of two kinds. Of those with F[a] ≤ r_b the
/// last is best: it leaves the fewest bytes to the segment, and its deadline is the latest. For those behind r_b the
/// value is F[a] − β·S_a and what depends on b alone: of two the later one is the better for all further b if its value
/// is not higher, so that a queue with ascending values gives the least. Every a enters and leaves it once; one that
/// misses its deadline for b misses it for all further b, and one that comes to be of the first kind stays so. A cost
/// of several such parts, whatever it does between them, has a queue for each, of the a that leave it a segment of its
/// sizes. A row then needs O(n · parts), otherwise O(n²).
namespace hcclsim::study {

/// The earliest end of communication with any number of segments, O(n · parts) or O(n²).
[[nodiscard]] Split best_split(const SplitProblem& problem, const SegmentCost& cost);

/// Told while a search goes on: the shortest step that it looks for lies between these.
using SearchProgress = std::function<void(Seconds above, Seconds at_most)>;

/// The split of at most `most_segments` segments, at least 1, with the least time by the objective; of those the fewest
/// segments; of those the earliest end of communication; of those one with time to spare, so that what comes late does
/// little harm: all segments but the last may take longer, by the most of a few parts of the end that are tried, then
/// each from the last one back begins where it has the most time. k rows for the end of communication,
/// for the step as many as limits are tried, some 10 to 50 times k.
[[nodiscard]] Split best_split(const SplitProblem& problem, const SegmentCost& cost, std::uint32_t most_segments,
                               Objective objective, const SearchProgress& progress = {});
/// The same for at most 1, 2, …, `most_segments` segments.
[[nodiscard]] std::vector<Split> best_splits(const SplitProblem& problem, const SegmentCost& cost,
                                             std::uint32_t most_segments, Objective objective,
                                             const SearchProgress& progress = {});

/// Calls visit(cuts) for each of the 2^(n−1) splits of `gradients`; of those of at most `most_segments` segments, if
/// that is given. For up to 31 gradients.
template <typename Visit>
void for_all_splits(std::uint32_t gradients, std::optional<std::uint32_t> most_segments, const Visit& visit) {
  for (std::uint32_t mask = 0; mask < (std::uint32_t{1} << (gradients - 1)); ++mask) {
    Cuts cuts;
    for (std::uint32_t i = 0; i + 1 < gradients; ++i) {
      if (((mask >> i) & 1U) != 0) cuts.push_back(i);
    }
    cuts.push_back(gradients - 1);
    if (!most_segments.has_value() || cuts.size() <= *most_segments) visit(std::move(cuts));
  }
}

/// Every split is tried, 2^(n−1) of them: the witness for small problems, n ≤ 24. Of equal times the fewest segments.
/// Throws Error(bad_input, "split") for more gradients.
[[nodiscard]] Split brute_force(const SplitProblem& problem, const Cost& cost, Objective objective,
                                std::optional<std::uint32_t> most_segments = {});

/// Two ends are the same up to the rounding of the sums behind them.
[[nodiscard]] bool same_time(Seconds a, Seconds b);

}  // namespace hcclsim::study
