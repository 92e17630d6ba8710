#pragma once

#include <cstdint>

#include "base/units.hpp"

/// Signatures of trees of reduction and of what buffers hold: equal for equal ones, and hardly ever for others. They do
/// not depend on how trees are numbered.
namespace hcclsim::hccl {

/// Bits well mixed (the finaliser of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mixed_bits(std::uint64_t bits) {
  bits += 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

/// Of the contribution of a rank.
[[nodiscard]] constexpr std::uint64_t signature_of_rank(Rank rank) { return mixed_bits(std::uint64_t{rank} + 2); }
/// Of the reduction of two trees, in either order.
[[nodiscard]] constexpr std::uint64_t signature_of_reduction(std::uint64_t a, std::uint64_t b) {
  return mixed_bits(mixed_bits(a) + mixed_bits(b));
}

/// Signature of a sequence.
class SequenceSignature {
 public:
  void add(std::uint64_t item) { value_ = (value_ ^ item) * 0x100000001b3U; }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace hcclsim::hccl
