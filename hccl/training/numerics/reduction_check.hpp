#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"

/// Reduced gradients against the fp64 sum of what the ranks computed.
namespace hcclsim::hccl {

/// How far the reduced gradients are from the fp64 mean (or sum) of what the ranks computed.
struct ReductionCheck {
  double largest_difference = 0;   ///< over all elements
  double bound = 0;                ///< of the rounding error, at the element of the largest difference
  double worst_ratio = 0;          ///< largest difference/bound; at most 1 unless the reduction is wrong
  std::uint32_t additions = 0;     ///< longest chain of reductions that a contribution passes through
  std::uint64_t elements = 0;      ///< that were compared
  std::uint64_t all_elements = 0;  ///< of the segments
  std::uint64_t vanished = 0;      ///< of them zero after the reduction though the exact sum is not
  std::uint64_t overflowed = 0;    ///< of them beyond the wire's range on the way; not part of the figures above
  std::uint64_t not_numbers = 0;   ///< of them NaN on some rank before the reduction; not part of the figures above

  /// Joins what was found of other elements; the result does not depend on the order.
  void merge(const ReductionCheck& other);
};

/// How much of a reduction is checked. Elements lie in pieces of at most some 10^5; a sample is every n-th piece.
enum class CheckedPart : std::uint8_t {
  none,
  sample,  ///< all up to sampled_elements, beyond them about as many
  all,
};
inline constexpr std::uint64_t sampled_elements = std::uint64_t{1} << 22U;

/// That n; 0 for none.
[[nodiscard]] std::uint64_t checked_distance(CheckedPart part, std::uint64_t elements);

/// What a contribution goes through on its way into a sum.
struct SumRounding {
  DataType wire = DataType::fp32;
  std::uint32_t roundings = 0;
  Rank contributions = 1;
};

/// Sums in fp64 of what all ranks contribute, element by element, and of the magnitudes.
class ExactSums {
 public:
  void clear();
  /// Appends the sums of elements first … first + count − 1 of flat buffers, one per rank. They begin at the number
  /// that is returned.
  std::size_t add(std::span<float* const> gradients, std::uint64_t first, std::uint64_t count);
  /// Compares scale · reduced, rounded to fp32, to scale · sum, from that number on.
  void compare(std::span<const float> reduced, std::size_t at, float scale, const SumRounding& rounding,
               ReductionCheck& check) const;

 private:
  std::vector<double> sums_;
  std::vector<double> magnitudes_;
};

}  // namespace hcclsim::hccl
