#include "device/numerics/loops/reduce.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

/// Reductions against element by element arithmetic in a wider type.
namespace hcclsim::device {
namespace {

constexpr ReduceOp operators[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min};

/// The operator on wide integers or on fp64.
template <typename Wide>
Wide combine(ReduceOp op, Wide a, Wide b) {
  switch (op) {
    case ReduceOp::sum:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::max:
      return a < b ? b : a;
    case ReduceOp::min:
      return b < a ? b : a;
  }
  return a;
}

template <typename T>
std::vector<T> reduced(DataType type, ReduceOp op, std::vector<T> a, const std::vector<T>& b, bool* flag = nullptr,
                       Overflow overflow = Overflow::infinity) {
  const bool overflowed = reduce(type, op, overflow, std::as_writable_bytes(std::span(a)).data(),
                                 std::as_bytes(std::span(b)).data(), a.size());
  if (flag != nullptr) *flag = overflowed;
  return a;
}

template <typename T>
class ReduceIntegers : public testing::Test {};
using Integers = testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                                std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(ReduceIntegers, Integers);

template <typename T>
DataType type_of() {
  constexpr DataType types[2][4] = {{DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64},
                                    {DataType::int8, DataType::int16, DataType::int32, DataType::int64}};
  return types[std::is_signed_v<T> ? 1 : 0][std::countr_zero(sizeof(T))];
}

TYPED_TEST(ReduceIntegers, WrapAround) {
  using T = TypeParam;
  std::mt19937_64 random(1);
  for (const ReduceOp op : operators) {
    for (const std::size_t elements : {0U, 1U, 63U, 64U, 129U, 1000U}) {
      SCOPED_TRACE(fmt::format("{} of {} elements", name_of(op), elements));
      std::vector<T> a(elements);
      std::vector<T> b(elements);
      for (T& value : a) value = static_cast<T>(random());
      for (T& value : b) value = static_cast<T>(random());
      bool overflowed = true;
      const std::vector<T> result = reduced(type_of<T>(), op, a, b, &overflowed);
      EXPECT_FALSE(overflowed);
      for (std::size_t i = 0; i < elements; ++i) {
        // Sums and products modulo 2^bits do not depend on the sign; the comparisons do.
        const bool compares = op == ReduceOp::max || op == ReduceOp::min;
        const T expected = compares ? combine<T>(op, a[i], b[i])
                                    : static_cast<T>(combine<std::uint64_t>(op, static_cast<std::uint64_t>(a[i]),
                                                                            static_cast<std::uint64_t>(b[i])));
        ASSERT_EQ(result[i], expected) << "element " << i;
      }
    }
  }
}

TEST(Reduce, IntegersByHand) {
  EXPECT_EQ(reduced<std::int8_t>(DataType::int8, ReduceOp::sum, {127, -128}, {1, -1}),
            (std::vector<std::int8_t>{-128, 127}));
  EXPECT_EQ(reduced<std::uint16_t>(DataType::uint16, ReduceOp::prod, {65535}, {65535}),
            (std::vector<std::uint16_t>{1}));
  EXPECT_EQ(reduced<std::int64_t>(DataType::int64, ReduceOp::sum, {std::numeric_limits<std::int64_t>::max()}, {1})[0],
            std::numeric_limits<std::int64_t>::min());
}

template <typename T>
void expect_ieee(DataType type) {
  std::mt19937_64 random(2);
  for (const ReduceOp op : operators) {
    SCOPED_TRACE(name_of(op));
    std::vector<T> a(10007);
    std::vector<T> b(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = std::ldexp(static_cast<T>(random() % 100000) - 50000, static_cast<int>(random() % 40) - 20);
      b[i] = std::ldexp(static_cast<T>(random() % 100000) - 50000, static_cast<int>(random() % 40) - 20);
    }
    bool overflowed = true;
    const std::vector<T> result = reduced(type, op, a, b, &overflowed);
    EXPECT_FALSE(overflowed);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(result[i], combine<T>(op, a[i], b[i])) << "element " << i;

    a[10006] = std::numeric_limits<T>::max();
    b[10006] = std::numeric_limits<T>::max();
    for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
      SCOPED_TRACE(overflow == Overflow::infinity ? "to infinity" : "saturated");
      const bool beyond = op == ReduceOp::sum || op == ReduceOp::prod;
      EXPECT_EQ(std::isinf(reduced(type, op, a, b, &overflowed, overflow)[10006]), beyond);
      EXPECT_EQ(overflowed, beyond);
    }
  }
}

TEST(Reduce, Fp32AndFp64AreTheProcessors) {
  expect_ieee<float>(DataType::fp32);
  expect_ieee<double>(DataType::fp64);
}

TEST(Reduce, NanWinsAndEqualKeepsTheDestination) {
  const float nan = std::nanf("");
  for (const ReduceOp op : operators) {
    SCOPED_TRACE(name_of(op));
    for (const float value : reduced<float>(DataType::fp32, op, {nan, 1, nan}, {1, nan, nan})) {
      EXPECT_TRUE(std::isnan(value));
    }
    bool overflowed = true;
    const std::vector<std::uint16_t> halves =
        reduced<std::uint16_t>(DataType::fp16, op, {0x7E00, 0x3C00}, {0x3C00, 0xFE01}, &overflowed, Overflow::saturate);
    for (const std::uint16_t bits : halves) EXPECT_GT(bits & 0x7FFF, 0x7C00);
    EXPECT_FALSE(overflowed);
  }
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    SCOPED_TRACE(name_of(op));
    const std::vector<float> zeros = reduced<float>(DataType::fp32, op, {0.0F, -0.0F}, {-0.0F, 0.0F});
    EXPECT_FALSE(std::signbit(zeros[0]));
    EXPECT_TRUE(std::signbit(zeros[1]));
  }
}

/// Random pairs of a 16-bit type: the result is the exact one, rounded once. fp64 holds the exact result (but for sums
/// of bf16 that are far apart, where it makes no difference); `narrow` needs it as fp32, to which it is rounded to odd,
/// so that the second rounding sees on which side of a tie it lies.
void expect_rounded_once(DataType type, Overflow overflow) {
  SCOPED_TRACE(fmt::format("{}, {}", name_of(type), overflow == Overflow::infinity ? "to infinity" : "saturated"));
  std::mt19937_64 random(3);
  std::vector<std::uint16_t> a(200000);
  std::vector<std::uint16_t> b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint16_t>(random());
    b[i] = static_cast<std::uint16_t>(i % 2 == 0 ? random() : a[i] ^ (0x8000U | (random() % 64)));
  }
  std::vector<float> x(a.size());
  std::vector<float> y(a.size());
  widen(type, std::as_bytes(std::span(a)).data(), x);
  widen(type, std::as_bytes(std::span(b)).data(), y);
  for (const ReduceOp op : operators) {
    SCOPED_TRACE(name_of(op));
    bool flag = false;
    const std::vector<std::uint16_t> result = reduced(type, op, a, b, &flag, overflow);
    std::vector<float> odd(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool nan = std::isnan(x[i]) || std::isnan(y[i]);
      const double exact = nan ? std::nan("") : combine<double>(op, x[i], y[i]);
      odd[i] = static_cast<float>(exact);
      if (std::isfinite(odd[i]) && odd[i] != exact && (std::bit_cast<std::uint32_t>(odd[i]) & 1U) == 0) {
        odd[i] = std::nextafter(odd[i], exact > odd[i] ? INFINITY : -INFINITY);
      }
    }
    std::vector<std::uint16_t> expected(a.size());
    const bool expected_flag = narrow(type, overflow, odd, std::as_writable_bytes(std::span(expected)).data());
    EXPECT_EQ(flag, expected_flag);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(odd[i])) {
        EXPECT_GT(result[i] & 0x7FFF, type == DataType::fp16 ? 0x7C00 : 0x7F80) << x[i] << " " << y[i];
        continue;
      }
      ASSERT_EQ(result[i], expected[i]) << x[i] << " " << y[i];
    }
  }
}

TEST(Reduce, SmallTypesAreRoundedOnce) {
  for (const DataType type : {DataType::fp16, DataType::bf16}) {
    expect_rounded_once(type, Overflow::infinity);
    expect_rounded_once(type, Overflow::saturate);
  }
}

TEST(Reduce, SaturatesSmallTypes) {
  bool overflowed = false;
  EXPECT_EQ(reduced<std::uint16_t>(DataType::fp16, ReduceOp::sum, {0x7BFF, 0xFBFF, 0x3C00}, {0x7BFF, 0xFBFF, 0x3C00},
                                   &overflowed, Overflow::saturate),
            (std::vector<std::uint16_t>{0x7BFF, 0xFBFF, 0x4000}));
  EXPECT_TRUE(overflowed);
  EXPECT_EQ(reduced<std::uint16_t>(DataType::fp16, ReduceOp::sum, {0x7BFF}, {0x7BFF}, &overflowed)[0], 0x7C00);
  EXPECT_TRUE(overflowed);
  EXPECT_EQ(reduced<std::uint16_t>(DataType::fp16, ReduceOp::sum, {0x7BFF}, {0x0001}, &overflowed)[0], 0x7BFF);
  EXPECT_FALSE(overflowed);
  EXPECT_EQ(
      reduced<std::uint16_t>(DataType::bf16, ReduceOp::prod, {0x7F7F}, {0x7F7F}, &overflowed, Overflow::saturate)[0],
      0x7F7F);
  EXPECT_TRUE(overflowed);
}

}  // namespace
}  // namespace hcclsim::device
