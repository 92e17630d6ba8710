#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "study/split/problem.hpp"

/// What no schedule can beat, and what a split's end consists of: the certificate that is printed with a split.
namespace hcclsim::study {

/// Gradients i … n−1 cannot begin before r_i and need the link for at least alpha + beta · their bytes, whatever the
/// number of streams on it, their order and the cuts: the largest of these is a bound.
struct LowerBound {
  Seconds finish = 0;
  std::uint32_t gradient = 0;  ///< the witness i
};

[[nodiscard]] LowerBound lower_bound(const SplitProblem& problem, const AffineCost& cost);
/// For a cost that is nowhere below any of the given affine ones (affine_minorants).
[[nodiscard]] LowerBound lower_bound(const SplitProblem& problem, std::span<const AffineCost> minorants);

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
/// Throws as affine_minorants does, and for one point.
[[nodiscard]] Cost interpolated(std::vector<CostPoint> points);

/// The segments that follow each other without a gap up to the end, from the last one that had to wait for its
/// gradient: the split ends at r + their costs.
[[nodiscard]] std::vector<SegmentTime> critical_chain(const std::vector<SegmentTime>& timeline);

}  // namespace hcclsim::study
