#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// What two sequences have in common, for comparing schedules of any length.
///
/// The longest common subsequence needs time in proportion to the product of the lengths, so it is sought only where
/// that is small. Longer stretches are cut first, at the numbers that occur once on either side: the longest run of
/// them in the same order on both sides is kept (patience sorting) and what lies between is aligned in turn. A long
/// stretch without such a number is aligned in windows that advance on both sides.
namespace hcclsim::hccl {

struct AlignedPair {
  std::size_t first = 0;   ///< index in the first sequence
  std::size_t second = 0;  ///< index in the second; the numbers there are equal
};

/// Pairs in ascending order of both indices. Time n log n of the lengths' sum n, times a constant that bounds the
/// stretches in which the longest subsequence is sought.
[[nodiscard]] std::vector<AlignedPair> align(const std::vector<std::uint32_t>& first,
                                             const std::vector<std::uint32_t>& second);

}  // namespace hcclsim::hccl
