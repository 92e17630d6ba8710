#include "device/numerics/loops/dropout.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

namespace hcclsim::device {
namespace {

constexpr std::size_t many = 100000;

TEST(Dropout, KeepsTheGivenFractionAndScalesIt) {
  for (const float rate : {0.0F, 0.1F, 0.5F, 0.75F}) {
    std::vector<float> values(many, 2);
    const Dropout dropout(7, 3, rate);
    dropout.apply(4, many, values, values);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < many; ++i) {
      EXPECT_EQ(values[i], dropout.keeps(4, i) ? 2 / (1 - rate) : 0) << i;
      kept += dropout.keeps(4, i) ? 1 : 0;
    }
    const double deviation = std::sqrt(many * rate * (1.0 - rate));
    EXPECT_NEAR(static_cast<double>(kept), many * (1.0 - rate), 4 * deviation + 1) << rate;
  }
}

TEST(Dropout, MasksOfOtherSeedsOperatorsAndSamplesAreOthers) {
  const Dropout mask(1, 2, 0.5F);
  for (const auto& [seed, op, sample] : {std::tuple(2, 2, 0), {1, 3, 0}, {2, 1, 0}, {1, 2, 1}}) {
    SCOPED_TRACE(fmt::format("seed {}, operator {}, sample {}", seed, op, sample));
    const Dropout other(seed, op, 0.5F);
    std::size_t equal = 0;
    for (std::size_t i = 0; i < many; ++i) equal += mask.keeps(0, i) == other.keeps(sample, i) ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(equal), many / 2.0, 4 * std::sqrt(many / 4.0));
  }
}

/// Six samples of 10 elements, whole and as a batch of two and one of four.
TEST(Dropout, ASampleHasTheSameMaskInEveryBatch) {
  constexpr std::size_t elements = 10;
  const Dropout dropout(5, 1, 0.5F);
  std::vector<float> whole(6 * elements, 1);
  std::vector<float> parts = whole;
  dropout.apply(0, elements, whole, whole);
  const std::span<float> all(parts);
  dropout.apply(0, elements, all.first(2 * elements), all.first(2 * elements));
  dropout.apply(2, elements, all.subspan(2 * elements), all.subspan(2 * elements));
  EXPECT_EQ(parts, whole);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i], dropout.keeps(i / elements, i % elements) ? 2 : 0) << i;
  }
}

TEST(Dropout, DropsInfinities) {
  std::vector<float> values(64, std::numeric_limits<float>::infinity());
  const Dropout dropout(1, 2, 0.5F);
  dropout.apply(0, values.size(), values, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], dropout.keeps(0, i) ? std::numeric_limits<float>::infinity() : 0) << i;
  }
}

}  // namespace
}  // namespace hcclsim::device
