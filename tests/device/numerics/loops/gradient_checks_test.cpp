#include "device/numerics/loops/gradient_checks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/counter_random.hpp"

namespace hcclsim::device {
namespace {

constexpr std::size_t block = 65'536;

TEST(Norm, OfKnownValues) {
  WorkerPool workers(2);
  EXPECT_EQ(norm(workers, {}), 0);
  EXPECT_EQ(norm(workers, std::vector<float>{3, -4}), 5);
  EXPECT_EQ(norm(workers, std::vector<float>{3, -4}, 0.5), 2.5);
  EXPECT_EQ(norm(workers, std::vector<float>(4 * block, 2.0F)), 1024);
}

TEST(Norm, NeitherOverflowsNorVanishes) {
  using Limits = std::numeric_limits<float>;
  WorkerPool workers(1);
  EXPECT_DOUBLE_EQ(norm(workers, std::vector<float>(100, Limits::max())), 10 * double{Limits::max()});
  EXPECT_DOUBLE_EQ(norm(workers, std::vector<float>(100, Limits::denorm_min())), 10 * double{Limits::denorm_min()});
  EXPECT_FALSE(std::isfinite(norm(workers, std::vector<float>{1, Limits::infinity()})));
  EXPECT_FALSE(std::isfinite(norm(workers, std::vector<float>{1, Limits::quiet_NaN()})));
}

TEST(Norm, BitsDoNotDependOnTheNumberOfWorkers) {
  std::vector<float> values(5 * block + 17);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(counter_uniform(1, 2, i));
  WorkerPool one(1);
  const double alone = norm(one, values, 0.1);
  // Uniform in [-1, 1): the mean of the squares is 1/3, its standard deviation 0.3 / sqrt(n).
  EXPECT_NEAR(alone, 0.1 * std::sqrt(static_cast<double>(values.size()) / 3), 0.1);
  for (unsigned count = 2; count <= 4; ++count) {
    WorkerPool several(count);
    EXPECT_EQ(norm(several, values, 0.1), alone) << count << " workers";
  }
}

TEST(AllFinite, FindsOneBadValueAtTheEdgesOfBlocks) {
  WorkerPool workers(3);
  std::vector<float> values(3 * block + 5, 1e38F);
  EXPECT_TRUE(all_finite(workers, {}));
  EXPECT_TRUE(all_finite(workers, values));
  for (const std::size_t at : {std::size_t{0}, block - 1, block, 2 * block - 1, 3 * block, values.size() - 1}) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      values[at] = bad;
      EXPECT_FALSE(all_finite(workers, values)) << at;
    }
    values[at] = 0;
  }
}

TEST(ClipFactor, OnlyMakesSmaller) {
  EXPECT_EQ(clip_factor(4, 1), 0.25);
  EXPECT_EQ(clip_factor(1, 1), 1);
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_EQ(clip_factor(0, 1), 1);
  EXPECT_EQ(clip_factor(std::numeric_limits<double>::infinity(), 1), 1);
  EXPECT_EQ(clip_factor(std::nan(""), 1), 1);
}

}  // namespace
}  // namespace hcclsim::device
