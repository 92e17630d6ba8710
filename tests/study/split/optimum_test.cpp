#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/error.hpp"
#include "study/split/bound.hpp"
#include "study/split/optimum.hpp"
#include "study/split/strategies.hpp"

/// The fast forms against all splits that there are, on random problems with fixed seeds.
namespace hcclsim::study {
namespace {

constexpr int instances = 20'000;

struct Instance {
  SplitProblem problem;
  AffineCost cost;
};

/// Small whole numbers, so that sums are exact and ties are frequent; every second instance has real numbers.
Instance random_instance(std::mt19937_64& random, std::uint32_t most_gradients) {
  const auto n = static_cast<std::uint32_t>(1 + random() % most_gradients);
  const bool whole = random() % 2 == 0;
  const auto number = [&](std::uint64_t most) {
    return whole ? static_cast<double>(random() % (most + 1))
                 : static_cast<double>(random() % 1'000'000) / 1e6 * static_cast<double>(most);
  };
  std::vector<Seconds> ready(n);
  std::vector<Bytes> bytes(n);
  Seconds date = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    date += number(4);
    ready[i] = date;
    bytes[i] = random() % 8;
  }
  return {SplitProblem(ready, bytes), {number(5), number(2)}};
}

TEST(SplitOptimum, AffineCostEqualsBruteForce) {
  std::mt19937_64 random(1);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 12);
    const Seconds best = brute_force(instance.problem, instance.cost).finish;
    ASSERT_TRUE(same_time(best_split(instance.problem, instance.cost).finish, best)) << i;
    ASSERT_TRUE(same_time(best_split(instance.problem, Cost(instance.cost)).finish, best)) << i;
    ASSERT_LE(lower_bound(instance.problem, instance.cost).finish, best * (1 + 1e-12)) << i;
  }
}

TEST(SplitOptimum, AtMostKSegmentsEqualBruteForce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 9);
    const auto fast = best_splits(instance.problem, instance.cost, 4);
    const auto any_cost = best_splits(instance.problem, Cost(instance.cost), 4);
    for (std::uint32_t k = 1; k <= 4; ++k) {
      const Seconds best = brute_force(instance.problem, instance.cost, k).finish;
      ASSERT_TRUE(same_time(fast[k - 1].finish, best)) << i << ", k " << k;
      ASSERT_TRUE(same_time(any_cost[k - 1].finish, best)) << i << ", k " << k;
      ASSERT_LE(fast[k - 1].cuts.size(), k) << i;
    }
  }
}

TEST(SplitOptimum, FewestSegmentsEqualBruteForce) {
  std::mt19937_64 random(3);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 10);
    const auto most = static_cast<std::uint32_t>(1 + random() % 10);
    const Split best = brute_force(instance.problem, instance.cost, most);
    const Split fewest = best_splits(instance.problem, instance.cost, most).back();
    ASSERT_TRUE(same_time(fewest.finish, best.finish)) << i;
    ASSERT_EQ(fewest.cuts.size(), best.cuts.size()) << i;
    // One rule for ties, whatever the form: that of fewer segments and the row of the number it has agree.
    const auto rows = best_splits(instance.problem, Cost(instance.cost), most);
    ASSERT_EQ(rows.back().cuts, fewest.cuts) << i;
    ASSERT_EQ(rows[fewest.cuts.size() - 1].cuts, fewest.cuts) << i;
  }
}

TEST(SplitOptimum, OfEqualEndsLaterSegmentsTakeWhatTheyCan) {
  // The last segment ends at 23 at the earliest, alone. What is before it must end by 20: the second may take all but
  // the first gradient (12 + 8), not that too.
  const SplitProblem problem(std::vector<Seconds>{0, 1, 12, 20}, std::vector<Bytes>{3, 3, 4, 2});
  const AffineCost cost{1, 1};
  EXPECT_EQ(best_splits(problem, cost, 4).back().cuts, (Cuts{0, 2, 3}));
  EXPECT_EQ(best_splits(problem, Cost(cost), 4).back().cuts, (Cuts{0, 2, 3}));
  EXPECT_DOUBLE_EQ(best_splits(problem, cost, 4, Objective::time).back().finish, 23);
}

TEST(SplitOptimum, CostsThatJumpEqualBruteForce) {
  std::mt19937_64 random(4);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 10);
    std::vector<CostPoint> points{{0, static_cast<double>(random() % 5)}};
    for (int p = 0; p < 5; ++p) {
      points.push_back({points.back().bytes + 1 + random() % 20, static_cast<double>(random() % 60) / 4});
    }
    const Cost cost = interpolated(points);
    const Seconds best = brute_force(instance.problem, cost).finish;
    ASSERT_TRUE(same_time(best_split(instance.problem, cost).finish, best)) << i;
    const auto within = best_splits(instance.problem, cost, 3);
    ASSERT_TRUE(same_time(within[2].finish, brute_force(instance.problem, cost, 3).finish)) << i;
  }
}

TEST(SplitOptimum, MinorantsBoundEveryCurve) {
  std::mt19937_64 random(5);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 8);
    // Points up to all bytes, straight between: the hull's lines are below the curve everywhere.
    std::vector<CostPoint> points{{0, static_cast<double>(random() % 9)}};
    while (points.back().bytes < instance.problem.total() + 1) {
      points.push_back({points.back().bytes + 1 + random() % 6, static_cast<double>(random() % 40) / 4});
    }
    const Cost cost = interpolated(points);
    const Seconds best = brute_force(instance.problem, cost).finish;
    ASSERT_LE(lower_bound(instance.problem, affine_minorants(points)).finish, best * (1 + 1e-12)) << i;
  }
}

TEST(SplitOptimum, MinorantsBoundSplitsWhoseSizesTheyKnow) {
  std::mt19937_64 random(9);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 10);
    // Costs without any form, known at the sizes of some splits only.
    const std::uint64_t seed = random();
    const Cost cost = [seed](Bytes bytes) { return static_cast<double>((bytes * 2'654'435'761U ^ seed) % 97) / 8; };
    std::set<Bytes> sizes;
    std::vector<Split> splits;
    for (int s = 0; s < 3; ++s) {
      Cuts cuts;
      for (std::uint32_t g = 0; g + 1 < instance.problem.size(); ++g) {
        if (random() % 2 == 0) cuts.push_back(g);
      }
      cuts.push_back(instance.problem.size() - 1);
      for (const SegmentTime& segment : timeline(instance.problem, cost, cuts)) sizes.insert(segment.bytes);
      splits.push_back(timed(instance.problem, cost, std::move(cuts)));
    }
    std::vector<CostPoint> points;
    for (const Bytes bytes : sizes) points.push_back({bytes, cost(bytes)});
    const LowerBound bound = lower_bound(instance.problem, affine_minorants(points));
    for (const Split& split : splits) ASSERT_LE(bound.finish, split.finish * (1 + 1e-12)) << i;
  }
}

TEST(SplitOptimum, WithoutOverlapOneSegmentIsBestAndEachFurtherCostsAlpha) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(fmt::format("instance {}", i));
    const Instance instance = random_instance(random, 12);
    // All gradients are ready at the end of the backward pass.
    const std::vector<Seconds> ready(instance.problem.size(), instance.problem.backward_end());
    std::vector<Bytes> bytes;
    for (std::uint32_t g = 0; g < instance.problem.size(); ++g) bytes.push_back(instance.problem.bytes(g, g + 1));
    const SplitProblem serial(ready, bytes);
    const Seconds one = timed(serial, instance.cost, one_segment(serial)).finish;
    ASSERT_TRUE(same_time(best_split(serial, instance.cost).finish, one));
    const Seconds each = timed(serial, instance.cost, one_per_gradient(serial)).finish;
    ASSERT_NEAR(each - one, (serial.size() - 1) * instance.cost.alpha, 1e-9);
  }
}

TEST(SplitOptimum, BigProblemsHaveTheSameEndByBothForms) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(fmt::format("instance {}", i));
    const Instance instance = random_instance(random, 2000);
    const Split fast = best_split(instance.problem, instance.cost);
    EXPECT_TRUE(same_time(fast.finish, best_split(instance.problem, Cost(instance.cost)).finish));
    EXPECT_LE(fast.finish, best_splits(instance.problem, instance.cost, 8).back().finish * (1 + 1e-12));
  }
}

TEST(SplitOptimum, WhatIsNoProblemIsRefused) {
  EXPECT_THROW(SplitProblem({}, {}), Error);
  const std::vector<Seconds> ready{1, 2};
  const std::vector<Seconds> negative{-1, 2};
  const std::vector<Bytes> bytes{1, 2};
  EXPECT_THROW(SplitProblem(ready, std::vector<Bytes>{1}), Error);
  EXPECT_THROW(SplitProblem(negative, bytes), Error);
  const SplitProblem problem(ready, bytes);
  for (const Cuts& cuts : {Cuts{}, Cuts{0}, Cuts{1, 0}, Cuts{0, 0, 1}, Cuts{2}}) {
    EXPECT_THROW(static_cast<void>(timeline(problem, AffineCost{1, 1}, cuts)), Error) << testing::PrintToString(cuts);
  }
  EXPECT_THROW(static_cast<void>(
                   brute_force(SplitProblem(std::vector<Seconds>(25, 0), std::vector<Bytes>(25, 1)), AffineCost{})),
               Error);
  EXPECT_THROW(static_cast<void>(affine_minorants({})), Error);
  EXPECT_THROW(static_cast<void>(interpolated({{1, 1}})), Error);
  EXPECT_THROW(static_cast<void>(interpolated({{1, 1}, {1, 2}})), Error);
}

}  // namespace
}  // namespace hcclsim::study
