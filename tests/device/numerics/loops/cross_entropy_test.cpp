#include "device/numerics/loops/cross_entropy.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::device {
namespace {

using testing::HasSubstr;

TEST(CrossEntropy, OfTwoRowsByHand) {
  // Probabilities 1/4, 3/4 and 1/2, 1/2.
  const std::vector<float> logits{0, std::log(3.0F), 5, 5};
  const std::array<std::int32_t, 2> labels{1, 0};
  std::vector<float> slopes(4);
  const LossOfRows result = cross_entropy(logits, labels, 0, 8, slopes);
  EXPECT_NEAR(result.loss, (std::log(4.0 / 3) + std::log(2.0)) / 2, 1e-7);
  EXPECT_EQ(result.correct, 2);                     // of equal logits the first counts
  const std::vector<float> expected{1, -1, -2, 2};  // 8/2 · (probability − target)
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(slopes[i], expected[i], 1e-6) << i;
}

TEST(CrossEntropy, SmoothsTheTarget) {
  const std::vector<float> logits{0, std::log(3.0F)};
  const std::array<std::int32_t, 1> labels{1};
  std::vector<float> slopes(2);
  const LossOfRows result = cross_entropy(logits, labels, 0.5F, 1, slopes);
  EXPECT_NEAR(result.loss, 0.25 * std::log(4.0) + 0.75 * std::log(4.0 / 3), 1e-7);
  EXPECT_NEAR(slopes[0], 0, 1e-7);  // the targets 1/4, 3/4 are the probabilities
  EXPECT_NEAR(slopes[1], 0, 1e-7);
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  const std::vector<float> logits{3e38F, -3e38F};
  const std::array<std::int32_t, 1> labels{0};
  std::vector<float> slopes(2);
  EXPECT_EQ(cross_entropy(logits, labels, 0, 1, slopes).loss, 0);
  EXPECT_EQ(slopes, (std::vector<float>{0, 0}));
}

TEST(CrossEntropy, NotANumberStaysVisible) {
  const std::vector<float> logits{std::numeric_limits<float>::quiet_NaN(), 1};
  const std::array<std::int32_t, 1> labels{1};
  EXPECT_TRUE(std::isnan(cross_entropy(logits, labels, 0, 1, {}).loss));
}

TEST(SigmoidCrossEntropy, OfThreeRowsByHand) {
  // Probabilities 3/4, 1/4 and 1/2.
  const std::vector<float> logits{std::log(3.0F), -std::log(3.0F), 0};
  const std::array<std::int32_t, 3> labels{1, 1, 0};
  std::vector<float> slopes(3);
  const LossOfRows result = sigmoid_cross_entropy(logits, labels, 0, 12, slopes);
  EXPECT_NEAR(result.loss, (std::log(4.0 / 3) + std::log(4.0) + std::log(2.0)) / 3, 1e-7);
  EXPECT_EQ(result.correct, 2);
  const std::vector<float> expected{-1, -3, 2};  // 12/3 · (probability − target)
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(slopes[i], expected[i], 1e-6) << i;
}

TEST(SigmoidCrossEntropy, SmoothsTheTarget) {
  const std::vector<float> logits{std::log(3.0F)};
  const std::array<std::int32_t, 1> labels{1};
  std::vector<float> slopes(1);
  const LossOfRows result = sigmoid_cross_entropy(logits, labels, 0.5F, 1, slopes);
  EXPECT_NEAR(result.loss, 0.25 * std::log(4.0) + 0.75 * std::log(4.0 / 3), 1e-7);
  EXPECT_NEAR(slopes[0], 0, 1e-7);  // the target 3/4 is the probability
}

TEST(SigmoidCrossEntropy, LargeLogitsAndOtherLabels) {
  const std::vector<float> logits{3e38F, -3e38F};
  std::vector<float> slopes(2);
  const LossOfRows result = sigmoid_cross_entropy(logits, std::array<std::int32_t, 2>{1, 0}, 0, 1, slopes);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(slopes, (std::vector<float>{0, 0}));
  EXPECT_THROW((void)sigmoid_cross_entropy(logits, std::array<std::int32_t, 2>{1, 2}, 0, 1, {}), Error);
  EXPECT_THROW((void)sigmoid_cross_entropy(logits, std::array<std::int32_t, 2>{-1, 0}, 0, 1, {}), Error);
}

TEST(CrossEntropy, RefusesALabelThatIsNoClass) {
  const std::vector<float> logits(6);
  for (const std::int32_t label : {3, -1}) {
    SCOPED_TRACE(fmt::format("label {}", label));
    const std::array<std::int32_t, 2> labels{0, label};
    try {
      cross_entropy(logits, labels, 0, 1, {});
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "labels");
      EXPECT_THAT(error.what(), HasSubstr("of row 1: labels must be 0 to 2"));
    }
  }
}

TEST(CrossEntropy, ALogitOfMinusInfinityHasProbabilityZero) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> logits{0, -infinity, 0};
  std::vector<float> slopes(3);
  EXPECT_DOUBLE_EQ(cross_entropy(logits, std::vector<std::int32_t>{0}, 0, 1, slopes).loss, std::log(2.0));
  EXPECT_EQ(slopes, (std::vector<float>{-0.5F, 0, 0.5F}));
  EXPECT_EQ(cross_entropy(logits, std::vector<std::int32_t>{1}, 0, 1, {}).loss, infinity);
  EXPECT_EQ(cross_entropy(logits, std::vector<std::int32_t>{0}, 0.1F, 1, {}).loss, infinity);
}

TEST(CrossEntropy, WhatIsNotANumberIsSeenInTheLoss) {
  const std::vector<float> logits{0, std::nanf(""), 1};
  std::vector<float> slopes(3);
  EXPECT_TRUE(std::isnan(cross_entropy(logits, std::vector<std::int32_t>{0}, 0, 1, slopes).loss));
  EXPECT_THAT(slopes, testing::Each(testing::IsNan()));
}

}  // namespace
}  // namespace hcclsim::device
