#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/counter_random.hpp"
#include "device/numerics/tensor_part.hpp"

/// Which elements a dropout operator keeps is a function of (seed, operator, sample, element), so the backward pass
/// computes the mask again instead of storing it, and it does not matter who computes which samples: a sample has the
/// same mask in whatever batch it lies.
namespace hcclsim::device {

class Dropout {
 public:
  /// `rate`: fraction of elements that are set to zero, 0 ≤ rate < 1.
  Dropout(std::uint64_t seed, std::uint32_t op, float rate);

  /// `element`: of those of the sample, in row-major order.
  [[nodiscard]] bool keeps(std::uint64_t sample, std::uint64_t element) const {
    return (mix_bits(key_of(sample) ^ element) >> 40U) >= dropped_;
  }

  /// out = in · mask / (1 − rate) for samples `first_sample`, `first_sample` + 1, …, which lie one after the other and
  /// have `elements` each. `out` may be `in`.
  void apply(std::uint64_t first_sample, std::size_t elements, std::span<const float> in, std::span<float> out) const;
  /// The same for a part of a tensor, whose first sample in the whole is `first_sample`.
  void apply(std::uint64_t first_sample, const TensorPart& part, std::span<const float> in, std::span<float> out) const;

 private:
  [[nodiscard]] std::uint64_t key_of(std::uint64_t sample) const { return mix_bits(key_ ^ sample); }

  std::uint64_t key_;      // element i of a sample has the random bits mix_bits(key_of(sample) ^ i)
  std::uint64_t dropped_;  // of 2^24 values of the upper bits: those below are dropped
  float scale_;
};

}  // namespace hcclsim::device
