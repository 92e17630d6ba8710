#include "hccl/training/numerics/reduction_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "device/numerics/loops/rounding.hpp"
#include "hccl/execute/data_flow.hpp"

namespace hcclsim::hccl {
namespace {

/// Takes one element into a check. What is not a number counts as infinitely far. The result does not depend on the
/// order of the elements.
void note(ReductionCheck& check, double difference, double bound) {
  constexpr double far = std::numeric_limits<double>::infinity();
  if (std::isnan(difference)) difference = far;
  if (std::isnan(bound)) bound = far;
  if (std::pair(difference, bound) > std::pair(check.largest_difference, check.bound)) {
    check.largest_difference = difference;
    check.bound = bound;
  }
  if (difference == 0) return;
  const double ratio = std::isinf(difference) ? far : difference / bound;
  check.worst_ratio = std::max(check.worst_ratio, ratio);
}

}  // namespace

void ReductionCheck::merge(const ReductionCheck& other) {
  note(*this, other.largest_difference, other.bound);
  worst_ratio = std::max(worst_ratio, other.worst_ratio);
  additions = std::max(additions, other.additions);
  elements += other.elements;
  all_elements += other.all_elements;
  vanished += other.vanished;
  overflowed += other.overflowed;
  not_numbers += other.not_numbers;
}

std::uint64_t checked_distance(CheckedPart part, std::uint64_t elements) {
  switch (part) {
    case CheckedPart::none:
      return 0;
    case CheckedPart::sample:
      return std::max<std::uint64_t>(1, (elements + sampled_elements - 1) / sampled_elements);
    case CheckedPart::all:
      break;
  }
  return 1;
}

void ExactSums::clear() {
  sums_.clear();
  magnitudes_.clear();
}

std::size_t ExactSums::add(std::span<float* const> gradients, std::uint64_t first, std::uint64_t count) {
  const std::size_t begin = sums_.size();
  sums_.resize(begin + count, 0);
  magnitudes_.resize(begin + count, 0);
  for (const float* const gradient : gradients) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const double value = gradient[first + i];
      sums_[begin + i] += value;
      magnitudes_[begin + i] += std::abs(value);
    }
  }
  return begin;
}

void ExactSums::compare(std::span<const float> reduced, std::size_t at, float scale, const SumRounding& rounding,
                        ReductionCheck& check) const {
  check.elements += reduced.size();
  const ReductionBound reduction_bound(rounding.wire, rounding.roundings, rounding.contributions);
  const double roundoff = device::unit_roundoff(DataType::fp32);
  const double below_normal = 0.5 * device::smallest_subnormal(DataType::fp32);
  const double largest = device::largest_finite(rounding.wire);
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    const double exact = sums_[at + i] * scale;
    const double difference = std::abs(static_cast<double>(reduced[i] * scale) - exact);
    // The product with the scale is rounded too.
    const double magnitudes = magnitudes_[at + i];
    if (std::isnan(magnitudes)) {
      ++check.not_numbers;
      continue;
    }
    const double error = reduction_bound(magnitudes);
    const double bound = error * scale + roundoff * std::abs(reduced[i] * scale) + below_normal;
    // No contribution and no partial sum is larger than the sum of the magnitudes and its rounding.
    const bool within_range = magnitudes + error <= largest;
    if (within_range || (std::isfinite(difference) && difference <= bound)) {
      note(check, difference, bound);
    } else {
      ++check.overflowed;
    }
    check.vanished += reduced[i] == 0 && exact != 0 ? 1 : 0;
  }
}

}  // namespace hcclsim::hccl
