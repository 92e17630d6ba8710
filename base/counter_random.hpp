#pragma once

#include <cstdint>

/// Random numbers by counter ("ctrgen v1"): every number is a function of (seed, stream, index), so it can be computed
/// when it is needed, in any order and on any thread. Different uses have different streams (random_stream), so that
/// they may have the same seed.
namespace hcclsim {

/// Where the streams of each use begin. All uses are here, so that none meets another's: a new one takes the next
/// multiple of 2^48.
namespace random_stream {

/// So many streams a use may have, but for weights and the recipe of synthetic data.
inline constexpr std::uint64_t width = std::uint64_t{1} << 48U;

inline constexpr std::uint64_t weights = 0;  ///< + parameter

// Synthetic data, a recipe that other programs follow (models/data/synthetic.hpp).
inline constexpr std::uint64_t noise = 1000000;     ///< + sample
inline constexpr std::uint64_t labels = 2000000;    ///< index: sample
inline constexpr std::uint64_t patterns = 3000000;  ///< + sample
inline constexpr std::uint64_t tokens = 4000000;    ///< + sample
inline constexpr std::uint64_t classes = width;     ///< + class
inline constexpr std::uint64_t successors = 2 * width;
inline constexpr std::uint64_t deviations = 3 * width;  ///< + sample

inline constexpr std::uint64_t epochs = 4 * width;   ///< orders of samples; index: epoch
inline constexpr std::uint64_t dropout = 5 * width;  ///< seeds of dropout; + worker of parameter servers; index: step
inline constexpr std::uint64_t compression_seeds = 6 * width;   ///< seeds of Q of PowerSGD; index: draw
inline constexpr std::uint64_t compression_normal = 7 * width;  ///< numbers in Q
inline constexpr std::uint64_t further_labels = 8 * width;      ///< + 2^20 · loss + label; index: sample
inline constexpr std::uint64_t replicas = 9 * width;            ///< seeds of replicas; index: replica
inline constexpr std::uint64_t checked_gradients = 10 * width;  ///< elements that are tried; + slot
inline constexpr std::uint64_t verified_data = 11 * width;      ///< of collectives; + rank, and beyond 2^40 more of it
inline constexpr std::uint64_t table_rows = 12 * width;         ///< ids that are looked up; + attempt; index: place
inline constexpr std::uint64_t classes_of_ids = 13 * width;     ///< how ids tell a class; + class; index: id
inline constexpr std::uint64_t expert_order = 14 * width;       ///< which experts rows prefer; + layer; index: expert
inline constexpr std::uint64_t npu_failures = 32 * width;       ///< + run of the job

}  // namespace random_stream

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
