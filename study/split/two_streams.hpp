#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "study/split/bound.hpp"
#include "study/split/problem.hpp"

/// Two communication streams instead of one.
///
/// On links of their own they are two machines: the order stays that of production, each segment goes to one of them.
/// The best assignment is NP-hard in general (PARTITION), but few states matter: after the first b gradients, a pair of
/// ends (f1, f2) matters only if no other pair is as early on both streams.
///
/// On one link they only hide each other's start-up times: alpha passes without the link, the bytes of the segments in
/// flight share its bandwidth. No exact method is known; the optimum lies between the lower bound and the best split
/// found.
namespace hcclsim::study {

struct StreamedSplit {
  Cuts cuts;
  std::vector<std::uint8_t> streams;  ///< 0 or 1, of each segment
  Seconds finish = 0;
};

/// The earliest end on two streams with links and costs of their own, with up to `most_segments` segments on both
/// together; of equal ends the fewest. O(n² · most_segments · number of states that matter).
[[nodiscard]] StreamedSplit best_split_on_two_links(const SplitProblem& problem, const std::array<AffineCost, 2>& costs,
                                                    std::uint32_t most_segments);

/// When the last segment ends with up to two segments in flight on one link, in order: a segment begins when its
/// gradients are ready and one of the two before it has ended.
[[nodiscard]] Seconds finish_on_shared_link(const SplitProblem& problem, const AffineCost& cost, const Cuts& cuts);

struct Bracket {
  Seconds bound = 0;  ///< nothing ends earlier
  Split best_found;
  bool exact = false;  ///< all splits were tried
};

/// Up to 12 gradients all splits are tried. Otherwise the search starts from the best splits for one stream with up to
/// `most_segments` segments, and moves, adds and removes single cuts while that helps. Never more segments than that.
[[nodiscard]] Bracket bracket_on_shared_link(const SplitProblem& problem, const AffineCost& cost,
                                             std::uint32_t most_segments);

}  // namespace hcclsim::study
