#pragma once

#include <cstdint>

#include "base/counter_random.hpp"
#include "base/units.hpp"

/// Signatures of trees of reduction and of the contents of buffers: equal things have equal signatures, and different
/// things hardly ever have. They do not depend on how trees are numbered.
namespace hcclsim::hccl {

/// Of the contribution of a rank.
[[nodiscard]] constexpr std::uint64_t signature_of_rank(Rank rank) { return mix_bits(std::uint64_t{rank} + 2); }
/// Of the reduction of two trees, in either order.
[[nodiscard]] constexpr std::uint64_t signature_of_reduction(std::uint64_t a, std::uint64_t b) {
  return mix_bits(mix_bits(a) + mix_bits(b));
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
