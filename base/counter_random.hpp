#pragma once

#include <cstdint>

/// Random numbers by counter ("ctrgen v1"): every number is a function of (seed, stream, index), so it can be computed
/// when it is needed, in any order and on any thread. Different uses have different streams: from 0 on for weights,
/// from 1000000 on for synthetic data (models/data/synthetic.cpp); every further use begins at its own multiple of
/// 2^48.
namespace hcclsim {

/// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

/// 64 random bits.
[[nodiscard]] constexpr std::uint64_t counter_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return mix_bits(mix_bits(mix_bits(seed) ^ stream) ^ index);
}

/// Uniform in [−1, 1) in steps of 2^−23, so exact in fp32.
[[nodiscard]] constexpr double counter_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(counter_bits(seed, stream, index) >> 40U) * 0x1p-23 - 1;
}

}  // namespace hcclsim
