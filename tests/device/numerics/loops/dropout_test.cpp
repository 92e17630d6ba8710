#include "device/numerics/loops/dropout.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hcclsim::device {
namespace {

constexpr std::size_t many = 100000;

TEST(Dropout, KeepsTheGivenFractionAndScalesIt) {
  for (const float rate : {0.0F, 0.1F, 0.5F, 0.75F}) {
    std::vector<float> values(many, 2);
    const Dropout dropout(7, 3, rate);
    dropout.apply(values, values);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < many; ++i) {
      EXPECT_EQ(values[i], dropout.keeps(i) ? 2 / (1 - rate) : 0) << i;
      kept += dropout.keeps(i) ? 1 : 0;
    }
    const double deviation = std::sqrt(many * rate * (1.0 - rate));
    EXPECT_NEAR(static_cast<double>(kept), many * (1.0 - rate), 4 * deviation + 1) << rate;
  }
}

TEST(Dropout, MasksOfOtherSeedsAndOperatorsAreOthers) {
  const Dropout mask(1, 2, 0.5F);
  for (const auto& [seed, op] : {std::pair(2, 2), std::pair(1, 3), std::pair(2, 1)}) {
    SCOPED_TRACE(fmt::format("seed {}, operator {}", seed, op));
    const Dropout other(seed, op, 0.5F);
    std::size_t equal = 0;
    for (std::size_t i = 0; i < many; ++i) equal += mask.keeps(i) == other.keeps(i) ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(equal), many / 2.0, 4 * std::sqrt(many / 4.0));
  }
}

TEST(Dropout, DropsInfinities) {
  std::vector<float> values(64, std::numeric_limits<float>::infinity());
  const Dropout dropout(1, 2, 0.5F);
  dropout.apply(values, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], dropout.keeps(i) ? std::numeric_limits<float>::infinity() : 0) << i;
  }
}

}  // namespace
}  // namespace hcclsim::device
