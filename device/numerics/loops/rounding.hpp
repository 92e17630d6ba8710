#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.hpp"

/// Numbers in the types of the device. Numbers are computed in fp32; what a device would store or send as fp16 (IEEE
/// 754 binary16) or bf16 (the upper half of an fp32) is rounded to that type here: to nearest, ties to even, subnormals
/// kept. A NaN stays a NaN: it becomes quiet and keeps the upper bits of its payload.
///
/// The conversions are integer arithmetic and need no instruction that only some processors have, so they give the same
/// bits everywhere. They are as fast as the memory: 4 to 5 ms for 25.6 M elements one way on one core
/// (bench/numerics_bench.cpp).
namespace hcclsim::device {

/// What happens to a result beyond the largest finite number. The 910A cuts it to that number; the 910B and later chips
/// give an infinity, as IEEE 754 specifies.
enum class Overflow : std::uint8_t { infinity, saturate };

/// Rounds fp32 `in` to fp16 or bf16, two bytes per element in `out` (which has in.size() elements and does not
/// overlap). saturate: every infinity, also one in the input, becomes the largest finite number of its sign. Returns
/// whether any result is infinite or was cut. fp32 is copied as it is. Throws Error(internal) for other types.
bool narrow(DataType to, Overflow overflow, std::span<const float> in, std::byte* out);

/// Exact inverse of narrow: fp16, bf16 or fp32 `in`, as many as `out` holds, becomes fp32.
void widen(DataType from, const std::byte* in, std::span<float> out);

/// widen(narrow(x)) of every element, in place; result as narrow's. Nothing to do for fp32.
bool round_in_place(DataType to, Overflow overflow, std::span<float> values);

/// Largest relative error u of rounding to nearest: 2^−11 (fp16), 2^−8 (bf16), 2^−24 (fp32), 2^−53 (fp64). Throws
/// Error(internal) for integers, as do the following.
[[nodiscard]] double unit_roundoff(DataType type);
[[nodiscard]] double smallest_subnormal(DataType type);
[[nodiscard]] double largest_finite(DataType type);

}  // namespace hcclsim::device
