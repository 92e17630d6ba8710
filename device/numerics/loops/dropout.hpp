#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/counter_random.hpp"

/// Which elements a dropout operator keeps is a function of (seed, operator, element), so the backward pass computes
/// the mask again instead of storing it, and it does not matter who computes which part.
namespace hcclsim::device {

class Dropout {
 public:
  /// `rate`: fraction of elements that are set to zero, 0 ≤ rate < 1.
  Dropout(std::uint64_t seed, std::uint32_t op, float rate);

  [[nodiscard]] bool keeps(std::uint64_t element) const { return (mix_bits(key_ ^ element) >> 40U) >= dropped_; }

  /// out = in · mask / (1 − rate) for elements 0, 1, … in row-major order. `out` may be `in`.
  void apply(std::span<const float> in, std::span<float> out) const;

 private:
  std::uint64_t key_;      // element i has the random bits mix_bits(key_ ^ i)
  std::uint64_t dropped_;  // of 2^24 values of the upper bits: those below are dropped
  float scale_;
};

}  // namespace hcclsim::device
