#include "device/numerics/loops/rounding.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/loops/small_float.hpp"

/// fp16 and bf16 against a slow reference in fp64 that knows only the formats' definitions.
namespace hcclsim::device {
namespace {

struct Format {
  DataType type;
  int fraction_bits;
  int bias;
};
constexpr Format fp16{DataType::fp16, 10, 15};
constexpr Format bf16{DataType::bf16, 7, 127};

/// The number that 16 bits mean.
double decode(const Format& format, std::uint16_t bits) {
  const int exponents = 1 << (15 - format.fraction_bits);
  const int exponent = (bits & 0x7FFF) >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  double magnitude = 0;
  if (exponent == exponents - 1) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, 1 - format.bias - format.fraction_bits);
  } else {
    magnitude = std::ldexp(fraction + (1 << format.fraction_bits), exponent - format.bias - format.fraction_bits);
  }
  return std::copysign(magnitude, (bits & 0x8000) != 0 ? -1.0 : 1.0);
}

/// The nearest number of the format, ties to even; NaN for NaN.
double round_to(const Format& format, Overflow overflow, double value) {
  if (std::isnan(value)) return value;
  const double largest = largest_finite(format.type);
  double magnitude = std::abs(value);
  if (std::isfinite(value) && value != 0) {
    const int exponent = std::max(std::ilogb(value), 1 - format.bias);
    const double unit = std::ldexp(1, exponent - format.fraction_bits);
    magnitude = std::nearbyint(magnitude / unit) * unit;
  }
  if (magnitude > largest) {
    magnitude = overflow == Overflow::saturate ? largest : std::numeric_limits<double>::infinity();
  }
  return std::copysign(magnitude, value);
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

std::vector<std::uint16_t> narrowed(DataType type, Overflow overflow, const std::vector<float>& values,
                                    bool* flag = nullptr) {
  std::vector<std::uint16_t> result(values.size());
  const bool overflowed = narrow(type, overflow, values, std::as_writable_bytes(std::span(result)).data());
  if (flag != nullptr) *flag = overflowed;
  return result;
}

/// Every upper half of an fp32 with lower halves around the ties of both formats, and random numbers.
std::vector<float> many_floats() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x2FFFU, 0x3000U, 0x3001U, 0x7FFFU,
                                      0x8000U, 0x8001U, 0xEFFFU, 0xF000U, 0xFFFFU}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  std::mt19937 random(5);
  for (int i = 0; i < 200000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (int i = 0; i < 200000; ++i) {  // around the range of fp16, with all its subnormals
    const auto exponent = static_cast<int>(random() % 48) - 30;
    values.push_back(std::ldexp(static_cast<float>(random() % 8388608) / 8388608.0F + 1, exponent));
  }
  return values;
}

TEST(Rounding, WidensEveryNumber) {
  for (const Format& format : {fp16, bf16}) {
    std::vector<std::uint16_t> all(65536);
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> wide(all.size());
    widen(format.type, std::as_bytes(std::span(all)).data(), wide);
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(same(wide[i], decode(format, all[i]))) << name_of(format.type) << " " << i;
      if (std::isnan(wide[i])) {
        EXPECT_NE(std::bit_cast<std::uint32_t>(wide[i]) & 0x400000U, 0U) << "not quiet: " << i;
      }
    }
    const std::vector<std::uint16_t> back = narrowed(format.type, Overflow::infinity, wide);
    const auto quiet = static_cast<std::uint16_t>(1U << (format.fraction_bits - 1));
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const bool nan = std::isnan(wide[i]);
      ASSERT_EQ(back[i], nan ? all[i] | quiet : all[i]) << name_of(format.type);
    }
  }
}

TEST(Rounding, NarrowsToTheNearest) {
  const std::vector<float> values = many_floats();
  for (const Format& format : {fp16, bf16}) {
    for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
      const std::vector<std::uint16_t> result = narrowed(format.type, overflow, values);
      std::vector<float> rounded = values;
      round_in_place(format.type, overflow, rounded);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_TRUE(same(decode(format, result[i]), round_to(format, overflow, values[i])))
            << name_of(format.type) << " of " << std::hexfloat << values[i] << ": " << decode(format, result[i]);
        ASSERT_TRUE(same(rounded[i], decode(format, result[i])))
            << name_of(format.type) << " of " << std::hexfloat << values[i] << " in place: " << rounded[i];
      }
    }
  }
}

TEST(Rounding, BitsAreThoseOfAnyProcessor) {
  // The test is compiled for any x86-64; the library takes the best instructions that this processor has.
  const std::vector<float> values = many_floats();
  const std::vector<std::uint16_t> halves = narrowed(DataType::fp16, Overflow::infinity, values);
  const std::vector<std::uint16_t> brains = narrowed(DataType::bf16, Overflow::saturate, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(halves[i], Fp16::narrow<Overflow::infinity>(values[i]).bits) << values[i];
    ASSERT_EQ(brains[i], Bf16::narrow<Overflow::saturate>(values[i]).bits) << values[i];
  }
}

TEST(Rounding, BoundariesByHand) {
  const auto half = [](float value) { return narrowed(DataType::fp16, Overflow::infinity, {value})[0]; };
  EXPECT_EQ(half(1.0F), 0x3C00);
  EXPECT_EQ(half(-2.0F), 0xC000);
  EXPECT_EQ(half(65504.0F), 0x7BFF);
  EXPECT_EQ(half(65519.996F), 0x7BFF);
  EXPECT_EQ(half(65520.0F), 0x7C00);
  EXPECT_EQ(half(0x1p-24F), 0x0001);
  EXPECT_EQ(half(0x1p-25F), 0x0000);         // tie between 0 and the smallest subnormal: even
  EXPECT_EQ(half(0x1.000002p-25F), 0x0001);  // just above it
  EXPECT_EQ(half(-0x1p-25F), 0x8000);
  EXPECT_EQ(half(1.0F + 0x1p-11F), 0x3C00);
  EXPECT_EQ(half(1.0F + 0x3p-11F), 0x3C02);
  const auto brain = [](float value) { return narrowed(DataType::bf16, Overflow::infinity, {value})[0]; };
  EXPECT_EQ(brain(1.0F), 0x3F80);
  EXPECT_EQ(brain(1.0F + 0x1p-8F), 0x3F80);
  EXPECT_EQ(brain(1.0F + 0x3p-8F), 0x3F82);
  EXPECT_EQ(brain(0x1.FEp127F), 0x7F7F);
  EXPECT_EQ(brain(std::numeric_limits<float>::max()), 0x7F80);
}

TEST(Rounding, FlagsWhatIsBeyondTheLargestFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto flag = [](DataType type, Overflow overflow, std::vector<float> values) {
    bool narrow_flag = false;
    narrowed(type, overflow, values, &narrow_flag);
    EXPECT_EQ(round_in_place(type, overflow, values), narrow_flag);
    return narrow_flag;
  };
  for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
    for (const DataType type : {DataType::fp16, DataType::bf16}) {
      std::vector<float> values(100, 1.0F);
      values[40] = std::nanf("1");
      EXPECT_FALSE(flag(type, overflow, values)) << name_of(type);
      for (const std::size_t place : {std::size_t{0}, std::size_t{63}, std::size_t{99}}) {
        SCOPED_TRACE(fmt::format("{}, {}, value {}", name_of(type),
                                 overflow == Overflow::infinity ? "to infinity" : "saturated", place));
        values[place] = -infinity;
        EXPECT_TRUE(flag(type, overflow, values));
        values[place] = std::numeric_limits<float>::max();
        EXPECT_TRUE(flag(type, overflow, values));
        values[place] = static_cast<float>(largest_finite(type));
        EXPECT_FALSE(flag(type, overflow, values));
      }
    }
  }
  EXPECT_EQ(narrowed(DataType::fp16, Overflow::saturate, {infinity, -1e6F}),
            (std::vector<std::uint16_t>{0x7BFF, 0xFBFF}));
  EXPECT_EQ(narrowed(DataType::bf16, Overflow::saturate, {infinity, -infinity}),
            (std::vector<std::uint16_t>{0x7F7F, 0xFF7F}));
}

TEST(Rounding, FiguresOfTheFormats) {
  EXPECT_EQ(unit_roundoff(DataType::fp16), 0x1p-11);
  EXPECT_EQ(unit_roundoff(DataType::bf16), 0x1p-8);
  EXPECT_EQ(unit_roundoff(DataType::fp32), 0x1p-24);
  EXPECT_EQ(unit_roundoff(DataType::fp64), 0x1p-53);
  EXPECT_EQ(smallest_subnormal(DataType::fp16), decode(fp16, 1));
  EXPECT_EQ(smallest_subnormal(DataType::bf16), decode(bf16, 1));
  EXPECT_EQ(smallest_subnormal(DataType::fp32), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(smallest_subnormal(DataType::fp64), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(largest_finite(DataType::fp16), decode(fp16, 0x7BFF));
  EXPECT_EQ(largest_finite(DataType::bf16), decode(bf16, 0x7F7F));
}

TEST(Rounding, OtherTypesHaveNone) {
  std::vector<float> values(1);
  EXPECT_FALSE(round_in_place(DataType::fp32, Overflow::infinity, values));
  EXPECT_THROW(round_in_place(DataType::int8, Overflow::infinity, values), Error);
  EXPECT_THROW((void)unit_roundoff(DataType::int32), Error);
}

}  // namespace
}  // namespace hcclsim::device
