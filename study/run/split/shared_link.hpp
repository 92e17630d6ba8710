#pragma once

#include <cstdint>

#include "study/run/split/bound.hpp"
#include "study/run/split/problem.hpp"

/// Two communication streams on one link: they only hide each other's start-up times. A start-up passes without the
/// link; then the segments in flight share its bandwidth. No exact method is known; the optimum lies between the lower
/// bound and the best split found.
namespace hcclsim::study {

/// What a segment takes alone, in two parts.
struct SharedCost {
  Seconds start_up = 0;
  SampledCost flow;  ///< the time for which it fills the link

  /// The start-up is alpha where the cost is affine, otherwise the least cost of the points.
  [[nodiscard]] static SharedCost of(const SampledCost& alone);
};

/// When the last segment ends with up to two segments in flight on one link, in order: a segment begins when its
/// gradients are ready and one of the two before it has ended.
[[nodiscard]] Seconds finish_on_shared_link(const SplitProblem& problem, const SharedCost& cost, const Cuts& cuts);

struct Bracket {
  Seconds bound = 0;  ///< nothing ends earlier
  Split best_found;
  bool exact = false;  ///< the best of all splits
};

/// Up to 12 gradients all splits are tried. Otherwise the search starts from the best splits for one stream with up to
/// `most_segments` segments, and moves, adds and removes single cuts while that helps. Never more segments than that.
[[nodiscard]] Bracket bracket_on_shared_link(const SplitProblem& problem, const SampledCost& alone,
                                             std::uint32_t most_segments);

}  // namespace hcclsim::study
