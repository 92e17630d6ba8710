#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "study/run/split/problem.hpp"

/// What no schedule can beat, and what a split's end consists of: the certificate that is printed with a split.
namespace hcclsim::study {

/// Of communication: gradients i … n−1 cannot begin before r_i and need the link for at least alpha + beta · their
/// bytes, whatever the number of streams on it, their order and the cuts. Of the step: gradients i … j are reduced no
/// earlier than r_i + alpha + beta · their bytes, and what follows j … n−1 runs after that, for any cuts. The largest
/// of these is a bound.
struct LowerBound {
  Seconds time = 0;
  std::uint32_t gradient = 0;  ///< the witness i
};

[[nodiscard]] LowerBound lower_bound(const SplitProblem& problem, const AffineCost& cost, Objective objective);
/// For a cost that is nowhere below any of the given affine ones (affine_minorants).
[[nodiscard]] LowerBound lower_bound(const SplitProblem& problem, std::span<const AffineCost> minorants,
                                     Objective objective);

/// A cost that was measured at some sizes.
struct CostPoint {
  Bytes bytes = 0;
  Seconds time = 0;
};

/// A cost with points on it, of ascending sizes, below whose lower convex hull it is nowhere, for the sizes that
/// segments can have.
struct SampledCost {
  SegmentCost cost;
  std::vector<CostPoint> points{};
};

/// Affine costs below all points, without negative parts: those that touch two neighbours of the points' lower convex
/// hull, the flat one and the one through 0. They bound the splits whose segments have sizes of the points, and those
/// of any size where the cost is concave or straight between the points. Needs ascending sizes; throws
/// Error(bad_input, "split") otherwise and without points.
[[nodiscard]] std::vector<AffineCost> affine_minorants(std::span<const CostPoint> points);

/// The cost that is straight between the points and goes on like the first and the last two of them; never below 0.
/// Where a point costs less than the one before it, the cost stays and drops at the point: somewhere between them
/// another algorithm took over. So the cost has parts that rise. A part goes on over points as long as it misses none
/// by more than `tolerance`, a fraction of its time. Throws as affine_minorants does, and for one point.
[[nodiscard]] SegmentCost interpolated(std::span<const CostPoint> points, double tolerance = 0);

/// What an end consists of: from the last segment that had to wait for its gradient, segments that follow each other
/// without a gap; of the step then what follows the gradients from the last of them on.
struct CriticalChain {
  std::vector<SegmentTime> segments;
  Seconds followers = 0;  ///< 0 for communication
};
[[nodiscard]] CriticalChain critical_chain(const SplitProblem& problem, const std::vector<SegmentTime>& timeline,
                                           Objective objective);

}  // namespace hcclsim::study
