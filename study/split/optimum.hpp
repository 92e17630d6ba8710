#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "study/split/problem.hpp"

/// Splits that no other split beats.
///
/// With F[b] the earliest end of the first b gradients,
///
///     F[b] = min over a < b of max(F[a], r_b) + c(a, b),   F[0] = 0.
///
/// It holds for any cost, since the end of a segment grows with the end of what was before it; for at most k segments
/// G_j[b] = min(G_{j−1}[b], min over a of max(G_{j−1}[a], r_b) + c(a, b)).
///
/// With an affine cost a row needs O(n). F never falls with b: taking the last gradient out of a split cannot make it
/// longer. So the predecessors of b fall into those with F[a] ≤ r_b, up to some p(b) that never moves back, of which
/// the last is best since it leaves the fewest bytes to the segment; and those behind p(b), whose value is F[a] − β·S_a
/// and what depends on b alone: a queue of candidates with ascending values gives the least. Every a enters and leaves
/// it once.
namespace hcclsim::study {

/// Which of the splits that end equally early.
enum class Objective : std::uint8_t {
  time,           ///< the first that is found
  time_segments,  ///< with the fewest segments; of those each segment, from the last one back, takes all the gradients
                  ///< that its deadline allows, so that what is ready early is sent early
};

/// The earliest end with any number of segments; O(n) if the cost is affine, otherwise O(n²).
[[nodiscard]] Split best_split(const SplitProblem& problem, const SegmentCost& cost);
/// The earliest ends with at most 1, 2, …, `most_segments` segments; O(n · most_segments) if the cost is affine, and
/// for `time_segments` O(n · most_segments²); otherwise O(n² · most_segments).
[[nodiscard]] std::vector<Split> best_splits(const SplitProblem& problem, const SegmentCost& cost,
                                             std::uint32_t most_segments,
                                             Objective objective = Objective::time_segments);

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

/// Every split is tried, 2^(n−1) of them: the witness for small problems, n ≤ 24. Of equal ends the fewest segments.
/// Throws Error(bad_input, "split") for more gradients.
[[nodiscard]] Split brute_force(const SplitProblem& problem, const Cost& cost,
                                std::optional<std::uint32_t> most_segments = {});

/// Two ends are the same up to the rounding of the sums behind them.
[[nodiscard]] bool same_time(Seconds a, Seconds b);

}  // namespace hcclsim::study
