#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// What two sequences have in common, for comparing schedules of any length.
///
/// The longest common subsequence needs time in proportion to the product of the lengths, so it is computed only where
/// that is small. Longer stretches are first cut at numbers that occur once on each side: the longest run of these in
/// the same order on both sides is kept (patience sorting), and the stretches between them are aligned in turn. A long
/// stretch without such a number is aligned in windows that advance on both sides.
namespace hcclsim::hccl {

struct AlignedPair {
  std::size_t first = 0;   ///< index in the first sequence
  std::size_t second = 0;  ///< index in the second; the numbers there are equal
};

/// Pairs in ascending order of both indices. Takes time in proportion to n log n, n being the sum of the lengths, times
/// a constant that bounds the stretches in which the longest common subsequence is computed.
[[nodiscard]] std::vector<AlignedPair> align(const std::vector<std::uint32_t>& first,
                                             const std::vector<std::uint32_t>& second);

}  // namespace hcclsim::hccl
