#include "study/run/split/robustness.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.hpp"
#include "study/run/split/bound.hpp"
#include "study/run/split/optimum.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;

/// alpha = 3, beta = 1, sizes 2, 1, 1, ready 0, 2, 5: {1}, {2,3} ends at 10, {1,2}, {3} at 12, one segment at 12.
const std::vector<Bytes> sizes{2, 1, 1};

constexpr Aim up_to(std::uint32_t most_segments) { return {most_segments, Objective::communication}; }

SplitProblem small_problem() { return {std::vector<Seconds>{0, 2, 5}, sizes}; }

/// alpha + beta / factor · bytes.
CostOverBandwidth scaled(const AffineCost& cost, std::vector<double> factors) {
  std::vector<CostOverBandwidth::Point> points;
  for (const double factor : factors) points.push_back({factor, SegmentCost::of({cost.alpha, cost.beta / factor})});
  return CostOverBandwidth(std::move(points));
}

TEST(SplitRobustness, RegretIsTheDistanceToTheBest) {
  const Regret regret = regret_of({1, 2}, small_problem(), SegmentCost::of({3, 1}), up_to(8));
  EXPECT_DOUBLE_EQ(regret.end, 12);
  EXPECT_DOUBLE_EQ(regret.time(), 2);
  EXPECT_DOUBLE_EQ(regret.fraction(), 0.2);
  EXPECT_THAT(regret.best, ElementsAre(0, 2));
  EXPECT_FALSE(regret.none());
  EXPECT_TRUE(regret_of({0, 2}, small_problem(), SegmentCost::of({3, 1}), up_to(8)).none());
}

TEST(SplitRobustness, RegretOfTheStep) {
  // Updates of 4, 1, 1: {1}, {2,3} ends its step at max(5 + 6, 10 + 2) = 12, one by one at max(5 + 6, 13 + 1) = 14.
  const SplitProblem problem(std::vector<Seconds>{0, 2, 5}, sizes, {.of_gradients = {4, 1, 1}});
  const Regret regret = regret_of({0, 1, 2}, problem, SegmentCost::of({3, 1}), {8, Objective::step});
  EXPECT_DOUBLE_EQ(regret.end, 14);
  EXPECT_DOUBLE_EQ(regret.best_end, 12);
  EXPECT_THAT(regret.best, ElementsAre(0, 2));
}

TEST(SplitRobustness, JitterCountsTheDrawsWithoutRegret) {
  // Ready at 0, 2, 5: {1}, {2,3} is the best. All at 5: one segment ends at 5 + 7 = 12, {1}, {2,3} at 5 + 5 + 5 = 15.
  const auto problem = [](std::uint32_t draw) {
    return small_problem().with_ready(draw % 4 == 3 ? std::vector<Seconds>{5, 5, 5} : std::vector<Seconds>{0, 2, 5});
  };
  const JitterOutcome outcome = under_jitter({0, 2}, SegmentCost::of({3, 1}), up_to(8), 8, problem);
  EXPECT_EQ(outcome.draws, 8U);
  EXPECT_EQ(outcome.optimal, 6U);
  EXPECT_DOUBLE_EQ(outcome.mean_regret, 2 * 3.0 / 8);
  EXPECT_DOUBLE_EQ(outcome.worst_regret, 3);
  EXPECT_DOUBLE_EQ(outcome.worst_fraction, 3.0 / 12);
}

TEST(SplitRobustness, CostsAreStraightInTheInverseOfTheBandwidth) {
  const CostOverBandwidth costs = scaled({3, 1}, {0.5, 1, 4});
  for (const double factor : {0.5, 0.7, 1.0, 1.5, 2.0, 4.0}) {
    EXPECT_DOUBLE_EQ(costs.at(factor).cost(10), 3 + 10 / factor) << factor;
    EXPECT_DOUBLE_EQ(costs.at(factor).affine()->beta, 1 / factor) << factor;
  }
  const auto table = [](double factor) {
    return interpolated(std::vector<CostPoint>{{0, 2}, {10, 2 + 10 / factor}, {20, 3 + 20 / factor}});
  };
  const CostOverBandwidth tables({{1, table(1)}, {2, table(2)}});
  EXPECT_DOUBLE_EQ(tables.at(1.6).cost(20), 3 + 20 / 1.6);
  EXPECT_EQ(tables.at(1.6).affine(), nullptr);
  EXPECT_THROW(CostOverBandwidth({{1, table(1)}}), Error);
  EXPECT_THROW(CostOverBandwidth({{1, table(1)}, {1, table(1)}}), Error);
  EXPECT_THROW(CostOverBandwidth({{0, table(1)}, {1, table(1)}}), Error);
  EXPECT_THROW(CostOverBandwidth({{1, table(1)}, {2, SegmentCost(table(2).cost)}}), Error);
}

TEST(SplitRobustness, ASplitCanBeTheBestInAllOfTheRange) {
  // With x = 1 / factor: {1}, {2,3} ends at max(3 + 2x, 5) + 3 + 2x, {1,2}, {3} and one segment at 8 + 4x.
  const auto first = best_over_bandwidth(small_problem(), scaled({3, 1}, {0.25, 1, 4}), up_to(8), {0, 2}, 1);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_DOUBLE_EQ(first[0].from, 0.25);
  EXPECT_DOUBLE_EQ(first[0].to, 4);
  // With alpha 6 at max(6 + 2x, 5) + 6 + 2x, and one segment at 11 + 4x: another split than the chosen one.
  const auto other = best_over_bandwidth(small_problem(), scaled({6, 1}, {0.25, 1, 4}), up_to(8), {0, 2}, 1);
  ASSERT_EQ(other.size(), 1U);
  EXPECT_THAT(other[0].cuts, ElementsAre(2));
  // With alpha 5 both end at 10 + 4x: the chosen one stays.
  const auto both = best_over_bandwidth(small_problem(), scaled({5, 1}, {0.25, 1, 4}), up_to(8), {0, 2}, 1);
  ASSERT_EQ(both.size(), 1U);
  EXPECT_THAT(both[0].cuts, ElementsAre(0, 2));
}

TEST(SplitRobustness, ABreakpointBetweenTwoSplits) {
  // With x = 1 / factor, two segments and alpha 1:
  //   {1}, {2,3} ends at max(1 + 3x, 6) + 1 + 4x, which is 7 + 4x up to x = 5/3 and then 2 + 7x,
  //   {1,2}, {3} at max(4 + 6x, 6) + 1 + x, which is 7 + x up to x = 1/3 and then 5 + 7x:
  // the latter is the best up to x = 2/3, a factor of 1.5.
  const SplitProblem problem(std::vector<Seconds>{0, 3, 6}, std::vector<Bytes>{3, 3, 1});
  const auto intervals = best_over_bandwidth(problem, scaled({1, 1}, {0.5, 1, 4}), up_to(2), {0, 2}, 1);
  ASSERT_EQ(intervals.size(), 2U);
  EXPECT_DOUBLE_EQ(intervals[0].from, 0.5);
  EXPECT_NEAR(intervals[0].to, 1.5, 1e-8);
  EXPECT_THAT(intervals[0].cuts, ElementsAre(0, 2));
  EXPECT_DOUBLE_EQ(intervals[1].from, intervals[0].to);
  EXPECT_DOUBLE_EQ(intervals[1].to, 4);
  EXPECT_THAT(intervals[1].cuts, ElementsAre(1, 2));
  // The same from an end of the range, and from outside of the chosen split's interval.
  const auto from_end = best_over_bandwidth(problem, scaled({1, 1}, {0.5, 4}), up_to(2), {0, 2}, 4);
  ASSERT_EQ(from_end.size(), 2U);
  EXPECT_NEAR(from_end[0].to, 1.5, 1e-8);
}

TEST(SplitRobustness, EveryIntervalHoldsTheBestSplit) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(fmt::format("instance {}", i));
    const auto n = static_cast<std::uint32_t>(2 + random() % 9);
    std::vector<Seconds> ready(n);
    std::vector<Bytes> bytes(n);
    Seconds date = 0;
    for (std::uint32_t g = 0; g < n; ++g) {
      ready[g] = date += static_cast<double>(random() % 50) / 10;
      bytes[g] = random() % 8;
    }
    const SplitProblem problem(ready, bytes);
    const CostOverBandwidth costs = scaled({static_cast<double>(random() % 30) / 10, 1}, {0.3, 1, 3});
    const auto most = static_cast<std::uint32_t>(1 + random() % 4);
    const Cuts chosen = best_split(problem, costs.at(1), most, Objective::communication).cuts;
    const auto intervals = best_over_bandwidth(problem, costs, up_to(most), chosen, 1);
    ASSERT_DOUBLE_EQ(intervals.front().from, 0.3);
    ASSERT_DOUBLE_EQ(intervals.back().to, 3);
    bool has_chosen = false;
    for (std::size_t k = 0; k < intervals.size(); ++k) {
      const BandwidthInterval& interval = intervals[k];
      if (k > 0) {
        ASSERT_DOUBLE_EQ(interval.from, intervals[k - 1].to);
      }
      has_chosen = has_chosen || (interval.cuts == chosen && interval.from <= 1 && 1 <= interval.to);
      for (const double part : {0.01, 0.3, 0.7, 0.99}) {
        const double factor = std::lerp(interval.from, interval.to, part);
        const Seconds best = brute_force(problem, costs.at(factor).cost, Objective::communication, most).finish;
        EXPECT_NEAR(timeline(problem, costs.at(factor).cost, interval.cuts).back().end, best, 1e-7 * best);
      }
    }
    EXPECT_TRUE(has_chosen);
  }
}

}  // namespace
}  // namespace hcclsim::study
