#include "device/numerics/loops/reduce.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "base/error.hpp"
#include "device/numerics/loops/small_float.hpp"

namespace hcclsim::device {
namespace {

/// A sum or a product. Integers are added and multiplied without sign and in at least 32 bits, where overflow is
/// defined.
template <typename Operation>
struct Arithmetic {
  template <typename T>
  INLINE static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
      return static_cast<T>(Operation()(static_cast<Wide>(a), static_cast<Wide>(b)));
    } else {
      return Operation()(a, b);
    }
  }
};

/// A maximum or minimum: `a` if it is the better one or a NaN, otherwise `b`, which is then the better one or a NaN.
template <typename NotWorse>
struct Better {
  template <typename T>
  INLINE static T of(T a, T b) {
    return NotWorse()(a, b) || a != a ? a : b;  // NOLINT(misc-redundant-expression): true for a NaN
  }
};

/// 1 if `value` is infinite.
INLINE std::uint32_t infinite(float value) { return (std::bit_cast<std::uint32_t>(value) << 1) == 0xFF000000U ? 1 : 0; }
INLINE std::uint64_t infinite(double value) {
  return (std::bit_cast<std::uint64_t>(value) << 1) == 0xFFE0000000000000U ? 1 : 0;
}

template <typename T, typename Op>
INLINE bool plain_loop(std::byte* __restrict destination, const std::byte* __restrict source, std::size_t elements) {
  // As wide as T, so that the flag is one more lane operation.
  std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t> overflowed = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    T a = 0;
    T b = 0;
    std::memcpy(&a, destination + i * sizeof(T), sizeof(T));
    std::memcpy(&b, source + i * sizeof(T), sizeof(T));
    a = Op::of(a, b);
    if constexpr (std::is_floating_point_v<T>) overflowed |= infinite(a);
    std::memcpy(destination + i * sizeof(T), &a, sizeof(T));
  }
  return overflowed != 0;
}

template <typename Type, typename Op, Overflow overflow>
INLINE bool small_loop(std::byte* __restrict destination, const std::byte* __restrict source, std::size_t elements) {
  std::uint32_t overflowed = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint16_t a = 0;
    std::uint16_t b = 0;
    std::memcpy(&a, destination + 2 * i, 2);
    std::memcpy(&b, source + 2 * i, 2);
    const Narrowed result = Type::template narrow<overflow>(Op::of(Type::widen(a), Type::widen(b)));
    a = static_cast<std::uint16_t>(result.bits);
    overflowed |= result.overflowed;
    std::memcpy(destination + 2 * i, &a, 2);
  }
  return overflowed != 0;
}

template <typename Op>
INLINE bool reduce_as(DataType type, Overflow overflow, std::byte* destination, const std::byte* source,
                      std::size_t elements) {
  const bool saturate = overflow == Overflow::saturate;
  switch (type) {
    case DataType::int8:
      return plain_loop<std::int8_t, Op>(destination, source, elements);
    case DataType::int16:
      return plain_loop<std::int16_t, Op>(destination, source, elements);
    case DataType::int32:
      return plain_loop<std::int32_t, Op>(destination, source, elements);
    case DataType::int64:
      return plain_loop<std::int64_t, Op>(destination, source, elements);
    case DataType::uint8:
      return plain_loop<std::uint8_t, Op>(destination, source, elements);
    case DataType::uint16:
      return plain_loop<std::uint16_t, Op>(destination, source, elements);
    case DataType::uint32:
      return plain_loop<std::uint32_t, Op>(destination, source, elements);
    case DataType::uint64:
      return plain_loop<std::uint64_t, Op>(destination, source, elements);
    case DataType::fp16:
      return saturate ? small_loop<Fp16, Op, Overflow::saturate>(destination, source, elements)
                      : small_loop<Fp16, Op, Overflow::infinity>(destination, source, elements);
    case DataType::bf16:
      return saturate ? small_loop<Bf16, Op, Overflow::saturate>(destination, source, elements)
                      : small_loop<Bf16, Op, Overflow::infinity>(destination, source, elements);
    case DataType::fp32:
      return plain_loop<float, Op>(destination, source, elements);
    case DataType::fp64:
      return plain_loop<double, Op>(destination, source, elements);
  }
  internal_error("unknown data type {}", static_cast<int>(type));
}

}  // namespace

FOR_EVERY_PROCESSOR
bool reduce(DataType type, ReduceOp op, Overflow overflow, std::byte* destination, const std::byte* source,
            std::size_t elements) {
  switch (op) {
    case ReduceOp::sum:
      return reduce_as<Arithmetic<std::plus<>>>(type, overflow, destination, source, elements);
    case ReduceOp::prod:
      return reduce_as<Arithmetic<std::multiplies<>>>(type, overflow, destination, source, elements);
    case ReduceOp::max:
      return reduce_as<Better<std::greater_equal<>>>(type, overflow, destination, source, elements);
    case ReduceOp::min:
      return reduce_as<Better<std::less_equal<>>>(type, overflow, destination, source, elements);
  }
  internal_error("unknown operator {}", static_cast<int>(op));
}

}  // namespace hcclsim::device
