#pragma once

#include <bit>
#include <cstdint>

#include "device/numerics/loops/instruction_sets.hpp"
#include "device/numerics/loops/rounding.hpp"

/// One element's conversion between fp32 and the 16-bit types, without branches, so that loops over them become vector
/// instructions of any processor. For rounding.cpp and reduce.cpp.
namespace hcclsim::device {

/// Bits of a 16-bit number, and whether it is infinite or was cut to the largest finite one.
struct Narrowed {
  std::uint32_t bits;
  std::uint32_t overflowed;
};

/// `yes` or `no`, by masks: for a conditional expression the compiler would move the addition that only one side needs
/// into a branch, and a loop with it would not become vector code.
INLINE std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

/// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
struct Fp16 {
  INLINE static float widen(std::uint16_t half) {
    const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
    const std::uint32_t magnitude = half & 0x7FFFU;
    constexpr std::uint32_t bias = 112U << 23;  // 127 − 15 in the exponent's place
    const std::uint32_t normal = (magnitude << 13) + bias;
    // A subnormal m·2^−24: the fraction m behind the exponent of 2^−14 is 2^−14 + m·2^−24.
    const float with_leading_one = std::bit_cast<float>((magnitude << 13) | (113U << 23));
    const auto subnormal = std::bit_cast<std::uint32_t>(with_leading_one - 0x1p-14F);
    const std::uint32_t special = (normal + bias) | (magnitude > 0x7C00U ? 0x400000U : 0U);
    std::uint32_t result = select(magnitude < 0x0400U, subnormal, normal);
    result = select(magnitude >= 0x7C00U, special, result);
    return std::bit_cast<float>(result | sign);
  }

  template <Overflow overflow>
  INLINE static Narrowed narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    // Half a unit of the last place less one, and one more if that place is odd: ties go to even.
    const std::uint32_t normal = ((magnitude + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13) - (112U << 10);
    // The last place of 0.5 is 2^−24, the unit of the subnormals: the addition rounds to it.
    const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
    const std::uint32_t nan = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
    constexpr std::uint32_t beyond = overflow == Overflow::saturate ? 0x7BFFU : 0x7C00U;
    std::uint32_t result = select(magnitude < 0x38800000U, subnormal, normal);  // 2^−14
    const bool is_beyond = magnitude >= 0x477FF000U;                            // 65520, half-way to 2^16
    const bool is_nan = magnitude > 0x7F800000U;
    result = select(is_beyond, beyond, result);
    result = select(is_nan, nan, result);
    return {result | sign, static_cast<std::uint32_t>(is_beyond) & static_cast<std::uint32_t>(!is_nan)};
  }
};

/// The upper half of an fp32: 8 bits of exponent, 7 of fraction.
struct Bf16 {
  INLINE static float widen(std::uint16_t half) {
    const std::uint32_t quiet = (half & 0x7FFFU) > 0x7F80U ? 0x400000U : 0U;
    return std::bit_cast<float>((std::uint32_t{half} << 16) | quiet);
  }

  template <Overflow overflow>
  INLINE static Narrowed narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t rounded = (magnitude + 0x7FFFU + ((magnitude >> 16) & 1U)) >> 16;
    const std::uint32_t nan = 0x7FC0U | (magnitude >> 16);
    constexpr std::uint32_t beyond = overflow == Overflow::saturate ? 0x7F7FU : 0x7F80U;
    const bool is_beyond = rounded >= 0x7F80U;
    const bool is_nan = magnitude > 0x7F800000U;
    std::uint32_t result = select(is_beyond, beyond, rounded);
    result = select(is_nan, nan, result);
    return {result | sign, static_cast<std::uint32_t>(is_beyond) & static_cast<std::uint32_t>(!is_nan)};
  }
};

}  // namespace hcclsim::device
