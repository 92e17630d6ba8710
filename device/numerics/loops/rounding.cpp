#include "device/numerics/loops/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "device/numerics/loops/small_float.hpp"

namespace hcclsim::device {
namespace {

template <typename Type, Overflow overflow>
INLINE bool narrow_loop(const float* __restrict in, std::byte* __restrict out, std::size_t count) {
  std::uint32_t overflowed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Narrowed result = Type::template narrow<overflow>(in[i]);
    const auto half = static_cast<std::uint16_t>(result.bits);
    std::memcpy(out + 2 * i, &half, sizeof half);
    overflowed |= result.overflowed;
  }
  return overflowed != 0;
}

template <typename Type>
INLINE void widen_loop(const std::byte* __restrict in, float* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, in + 2 * i, sizeof half);
    out[i] = Type::widen(half);
  }
}

template <typename Type, Overflow overflow>
INLINE bool round_loop(float* values, std::size_t count) {
  std::uint32_t overflowed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Narrowed result = Type::template narrow<overflow>(values[i]);
    values[i] = Type::widen(static_cast<std::uint16_t>(result.bits));
    overflowed |= result.overflowed;
  }
  return overflowed != 0;
}

FOR_EVERY_PROCESSOR bool narrow_any(bool fp16, bool saturate, const float* in, std::byte* out, std::size_t count) {
  if (fp16) {
    return saturate ? narrow_loop<Fp16, Overflow::saturate>(in, out, count)
                    : narrow_loop<Fp16, Overflow::infinity>(in, out, count);
  }
  return saturate ? narrow_loop<Bf16, Overflow::saturate>(in, out, count)
                  : narrow_loop<Bf16, Overflow::infinity>(in, out, count);
}

FOR_EVERY_PROCESSOR void widen_any(bool fp16, const std::byte* in, float* out, std::size_t count) {
  if (fp16) {
    widen_loop<Fp16>(in, out, count);
  } else {
    widen_loop<Bf16>(in, out, count);
  }
}

FOR_EVERY_PROCESSOR bool round_any(bool fp16, bool saturate, float* values, std::size_t count) {
  if (fp16) {
    return saturate ? round_loop<Fp16, Overflow::saturate>(values, count)
                    : round_loop<Fp16, Overflow::infinity>(values, count);
  }
  return saturate ? round_loop<Bf16, Overflow::saturate>(values, count)
                  : round_loop<Bf16, Overflow::infinity>(values, count);
}

void demand_small_float(DataType type) {
  if (type != DataType::fp16 && type != DataType::bf16) {
    internal_error("conversion between fp32 and {}: only fp16 and bf16 have one", name_of(type));
  }
}

/// Figures of a binary floating-point format.
struct Format {
  int precision;        // bits of the significand with its leading one
  double least_normal;  // 2^emin
  double largest_finite;
};

Format format_of(DataType type) {
  switch (type) {
    case DataType::fp16:
      return {11, 0x1p-14, 65504};
    case DataType::bf16:
      return {8, 0x1p-126, 0x1.FEp127};
    case DataType::fp32:
      return {24, 0x1p-126, std::numeric_limits<float>::max()};
    case DataType::fp64:
      return {53, 0x1p-1022, std::numeric_limits<double>::max()};
    default:
      internal_error("{} is not a floating-point type", name_of(type));
  }
}

}  // namespace

bool narrow(DataType to, Overflow overflow, std::span<const float> in, std::byte* out) {
  if (to == DataType::fp32) {
    std::ranges::copy(std::as_bytes(in), out);
    return false;
  }
  demand_small_float(to);
  return narrow_any(to == DataType::fp16, overflow == Overflow::saturate, in.data(), out, in.size());
}

void widen(DataType from, const std::byte* in, std::span<float> out) {
  if (from == DataType::fp32) {
    std::copy_n(in, out.size_bytes(), std::as_writable_bytes(out).data());
    return;
  }
  demand_small_float(from);
  widen_any(from == DataType::fp16, in, out.data(), out.size());
}

bool round_in_place(DataType to, Overflow overflow, std::span<float> values) {
  if (to == DataType::fp32) return false;
  demand_small_float(to);
  return round_any(to == DataType::fp16, overflow == Overflow::saturate, values.data(), values.size());
}

double unit_roundoff(DataType type) { return std::ldexp(1.0, -format_of(type).precision); }

double smallest_subnormal(DataType type) {
  const Format format = format_of(type);
  return std::ldexp(format.least_normal, 1 - format.precision);
}

double largest_finite(DataType type) { return format_of(type).largest_finite; }

}  // namespace hcclsim::device
