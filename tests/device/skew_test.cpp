#include "device/skew.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::device {
namespace {

TEST(Skew, NoneByDefault) {
  const std::vector<std::pair<std::string, Skew>> cases{
      {"default", Skew()}, {"no options", Skew({}, 8)}, {"equal speeds", Skew({.speeds = {1, 1}}, 2)}};
  for (const auto& [name, skew] : cases) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(skew.none());
    EXPECT_EQ(skew.start(1), 0);
    EXPECT_EQ(skew.speed(1), 1);
    EXPECT_EQ(skew.jitter(1, 5, 17), 1);
  }
}

TEST(Skew, SpeedsByRank) {
  const Skew skew({.speeds = {1, 0.5, 2}}, 3);
  EXPECT_FALSE(skew.none());
  EXPECT_EQ(skew.speed(1), 0.5);
  EXPECT_EQ(skew.speed(2), 2);
}

TEST(Skew, LeastJitter) {
  EXPECT_EQ(Skew().least_jitter(), 1);
  EXPECT_DOUBLE_EQ(Skew({.jitter = 0.1}, 2).least_jitter(), 0.4);
  EXPECT_NEAR(Skew({.jitter = 0.5, .shape = JitterShape::uniform}, 2).least_jitter(), 0.134, 0.0001);
  EXPECT_DOUBLE_EQ(Skew({.jitter = 0.9, .shape = JitterShape::exponential}, 2).least_jitter(), 0.1);
}

TEST(Skew, StartsFromADateOn) {
  const Skew at_once({.start = 2}, 4);
  EXPECT_FALSE(at_once.none());
  EXPECT_EQ(at_once.start(3), 2);
  const Skew spread({.start = 2, .start_skew = 1, .seed = 42}, 16);
  EXPECT_EQ(spread.start(15), 2 + 0x1.d51899c423a9ap-1);
  EXPECT_THROW(Skew({.start = -1}, 4), Error);
}

// Computed by an independent program from the definition, so that another compiler or machine gives the same numbers.
TEST(Skew, NumbersAreFixed) {
  const Skew skew({.start_skew = 1, .speed_spread = 0.5, .jitter = 0.0625, .seed = 42}, 16);
  EXPECT_EQ(skew.start(0), 0x1.3c8c1cdb64e54p-3);
  EXPECT_EQ(skew.start(15), 0x1.d51899c423a9ap-1);
  EXPECT_EQ(skew.speed(3), 0x1.103e256f5b548p-1);
  EXPECT_EQ(skew.jitter(2, 7, 300), 0x1.0965300000000p+0);
}

TEST(Skew, GoesOnWithTheIterationsToComeFromTheDatesOfTheLast) {
  const Skew whole({.start_skew = 1, .speed_spread = 0.5, .jitter = 0.0625, .seed = 42}, 2);
  Skew rest = whole;
  EXPECT_FALSE(rest.goes_on());
  rest.go_on(7, {2.5, 3});
  EXPECT_TRUE(rest.goes_on());
  EXPECT_EQ(rest.start(1), 3);
  EXPECT_EQ(rest.speed(1), whole.speed(1));
  EXPECT_EQ(rest.jitter(1, 0, 300), whole.jitter(1, 7, 300));
  EXPECT_EQ(rest.jitter(0, 2, 3), whole.jitter(0, 9, 3));
  Skew none;
  none.go_on(1, {1});
  EXPECT_FALSE(none.none());
}

// Over many kernels: mean 1, the standard deviation asked for, and the largest factor of the shape.
TEST(Skew, ShapesOfJitterHaveTheirMoments) {
  constexpr double jitter = 0.1;
  constexpr int count = 200'000;
  const auto factors_of = [](JitterShape shape) {
    const Skew skew({.jitter = jitter, .shape = shape, .seed = 3}, 4);
    std::vector<double> factors;
    for (int kernel = 0; kernel < count; ++kernel) factors.push_back(skew.jitter(1, 2, kernel));
    return factors;
  };
  for (const JitterShape shape : {JitterShape::normal, JitterShape::uniform, JitterShape::exponential}) {
    SCOPED_TRACE(name_of(shape));
    double sum = 0;
    double squares = 0;
    for (const double factor : factors_of(shape)) {
      sum += factor;
      squares += (factor - 1) * (factor - 1);
    }
    EXPECT_NEAR(sum / count, 1, 5 * jitter / std::sqrt(count));
    EXPECT_NEAR(std::sqrt(squares / count), jitter, 0.01 * jitter);
  }
  const std::vector<double> uniform = factors_of(JitterShape::uniform);
  EXPECT_LE(*std::ranges::max_element(uniform), 1 + jitter * std::sqrt(3));
  EXPECT_GE(*std::ranges::min_element(uniform), 1 - jitter * std::sqrt(3));
  // P(E > x) = e^-x.
  const std::vector<double> exponential = factors_of(JitterShape::exponential);
  EXPECT_GE(*std::ranges::min_element(exponential), 1 - jitter);
  for (const double x : {0.5, 1.0, 2.0, 4.0}) {
    const auto beyond =
        std::ranges::count_if(exponential, [&](double factor) { return (factor - 1) / jitter + 1 > x; });
    EXPECT_NEAR(static_cast<double>(beyond) / count, std::exp(-x), 5 * std::sqrt(std::exp(-x) / count)) << x;
  }
}

TEST(Skew, JitterIsBoundedByItsShape) {
  EXPECT_NO_THROW(Skew({.jitter = 0.57, .shape = JitterShape::uniform}, 2));
  EXPECT_NO_THROW(Skew({.jitter = 0.99, .shape = JitterShape::exponential}, 2));
  EXPECT_THROW(Skew({.jitter = 0.17, .shape = JitterShape::normal}, 2), Error);
  EXPECT_THROW(Skew({.jitter = 0.58, .shape = JitterShape::uniform}, 2), Error);
  EXPECT_THROW(Skew({.jitter = 1, .shape = JitterShape::exponential}, 2), Error);
}

TEST(Skew, DependsOnEveryCoordinate) {
  const SkewOptions options{.start_skew = 1, .jitter = 0.1, .seed = 1};
  SkewOptions other = options;
  other.seed = 2;
  const Skew skew(options, 16);
  EXPECT_NE(skew.jitter(0, 0, 0), skew.jitter(1, 0, 0));
  EXPECT_NE(skew.jitter(0, 0, 0), skew.jitter(0, 1, 0));
  EXPECT_NE(skew.jitter(0, 0, 0), skew.jitter(0, 0, 1));
  EXPECT_NE(skew.jitter(0, 1, 0), skew.jitter(0, 0, 1));
  EXPECT_NE(skew.jitter(0, 0, 0), Skew(other, 16).jitter(0, 0, 0));
  EXPECT_NE(skew.start(3), Skew(other, 16).start(3));
}

struct Moments {
  double mean = 0;
  double variance = 0;
  double correlation = 0;  ///< of successive values
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
};

Moments moments(const std::vector<double>& values) {
  Moments result;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) {
    result.mean += value / count;
    result.lowest = std::min(result.lowest, value);
    result.highest = std::max(result.highest, value);
  }
  double previous = result.mean;
  for (const double value : values) {
    result.variance += (value - result.mean) * (value - result.mean) / count;
    result.correlation += (value - result.mean) * (previous - result.mean) / count;
    previous = value;
  }
  result.correlation /= result.variance;
  return result;
}

TEST(Skew, JitterHasItsMeanAndDeviation) {
  const Skew skew({.jitter = 0.05, .seed = 7}, 4);
  std::vector<double> values;
  int within_one = 0;
  for (Rank rank = 0; rank < 4; ++rank) {
    for (std::uint32_t iteration = 0; iteration < 50; ++iteration) {
      for (std::uint32_t kernel = 0; kernel < 500; ++kernel) {
        values.push_back(skew.jitter(rank, iteration, kernel));
        within_one += std::abs(values.back() - 1) < 0.05 ? 1 : 0;
      }
    }
  }
  // 10^5 values: the mean's standard error is 0.05 / 316 = 1.6e-4, that of the variance 0.45 % of it.
  const Moments found = moments(values);
  EXPECT_NEAR(found.mean, 1, 6e-4);
  EXPECT_NEAR(found.variance, 0.0025, 0.0025 * 0.02);
  EXPECT_NEAR(found.correlation, 0, 0.013);
  EXPECT_GT(found.lowest, 1 - 6 * 0.05);
  EXPECT_LT(found.highest, 1 + 6 * 0.05);
  EXPECT_NEAR(within_one / 1e5, 0.683, 0.008);  // as a normal distribution
}

TEST(Skew, StartAndSpeedAreUniform) {
  const Skew skew({.start_skew = 2e-3, .speed_spread = 0.1, .seed = 3}, 100000);
  std::vector<double> starts;
  std::vector<double> speeds;
  for (Rank rank = 0; rank < 100000; ++rank) {
    starts.push_back(skew.start(rank));
    speeds.push_back(skew.speed(rank));
  }
  const Moments start = moments(starts);
  EXPECT_NEAR(start.mean, 1e-3, 1e-5);
  EXPECT_NEAR(start.variance, 4e-6 / 12, 4e-6 / 12 * 0.02);
  EXPECT_GE(start.lowest, 0);
  EXPECT_LT(start.highest, 2e-3);
  const Moments speed = moments(speeds);
  EXPECT_NEAR(speed.mean, 1, 1e-3);
  EXPECT_NEAR(speed.variance, 0.04 / 12, 0.04 / 12 * 0.02);
  EXPECT_GE(speed.lowest, 0.9);
  EXPECT_LT(speed.highest, 1.1);
}

TEST(Skew, RejectsBadOptions) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const SkewOptions bad[] = {
      {.start_skew = -1},       {.start_skew = nan},
      {.start_skew = infinity}, {.speeds = {1}},
      {.speeds = {1, 0}},       {.speeds = {1, -1}},
      {.speeds = {1, nan}},     {.speeds = {1, 1, 1}},
      {.speeds = {1, 1e-306}},  {.speeds = {1, 1e300}},
      {.speed_spread = -1},     {.speed_spread = 1},
      {.jitter = 0.2},          {.jitter = -0.1},
      {.jitter = nan},          {.speeds = {1, 1}, .speed_spread = 0.1},
  };
  for (const SkewOptions& options : bad) {
    EXPECT_THROW(Skew(options, 2), Error)
        << fmt::format("start skew {}, speeds {}, spread {}, jitter {}", options.start_skew,
                       fmt::join(options.speeds, ","), options.speed_spread, options.jitter);
  }
}

}  // namespace
}  // namespace hcclsim::device
