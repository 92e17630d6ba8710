#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "study/run/split/bound.hpp"
#include "study/run/split/optimum.hpp"
#include "study/run/split/strategies.hpp"

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
  Followers followers;
  if (random() % 4 != 0) {
    for (std::uint32_t i = 0; i < n; ++i) followers.of_gradients.push_back(number(3));
    followers.rest = number(5);
  }
  return {SplitProblem(ready, bytes, followers), {number(5), number(2)}};
}

constexpr std::array objectives{Objective::step, Objective::communication};

/// Up to rounding: limits of a step are tried to that.
bool same(Seconds a, Seconds b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); }

/// Rises and drops at random, straight between.
std::vector<CostPoint> random_curve(std::mt19937_64& random, Bytes up_to) {
  std::vector<CostPoint> points{{0, static_cast<double>(random() % 5)}};
  while (points.size() < 6 || points.back().bytes < up_to) {
    points.push_back({points.back().bytes + 1 + random() % 20, static_cast<double>(random() % 60) / 4});
  }
  return points;
}

TEST(SplitOptimum, AffineCostEqualsBruteForce) {
  std::mt19937_64 random(1);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 12);
    const Seconds best = brute_force(instance.problem, instance.cost, Objective::communication).finish;
    ASSERT_TRUE(same_time(best_split(instance.problem, instance.cost).finish, best)) << i;
    ASSERT_TRUE(same_time(best_split(instance.problem, Cost(instance.cost)).finish, best)) << i;
    ASSERT_LE(lower_bound(instance.problem, instance.cost, Objective::communication).time, best * (1 + 1e-12)) << i;
  }
}

TEST(SplitOptimum, AtMostKSegmentsEqualBruteForce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 9);
    for (const Objective objective : objectives) {
      SCOPED_TRACE(fmt::format("instance {}, objective {}", i, static_cast<int>(objective)));
      const auto fast = best_splits(instance.problem, instance.cost, 4, objective);
      const auto any_cost = best_splits(instance.problem, Cost(instance.cost), 4, objective);
      const Seconds bound = lower_bound(instance.problem, instance.cost, objective).time;
      for (std::uint32_t k = 1; k <= 4; ++k) {
        const Seconds best = brute_force(instance.problem, instance.cost, objective, k).time(objective);
        ASSERT_TRUE(same(fast[k - 1].time(objective), best)) << "k " << k;
        ASSERT_TRUE(same(any_cost[k - 1].time(objective), best)) << "k " << k;
        ASSERT_LE(bound, best * (1 + 1e-12));
        ASSERT_LE(fast[k - 1].cuts.size(), k);
      }
    }
  }
}

TEST(SplitOptimum, FewestSegmentsEqualBruteForce) {
  std::mt19937_64 random(3);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 10);
    const auto most = static_cast<std::uint32_t>(1 + random() % 10);
    for (const Objective objective : objectives) {
      SCOPED_TRACE(fmt::format("instance {}, objective {}", i, static_cast<int>(objective)));
      const Split best = brute_force(instance.problem, instance.cost, objective, most);
      const Split fewest = best_split(instance.problem, instance.cost, most, objective);
      ASSERT_TRUE(same(fewest.time(objective), best.time(objective)));
      ASSERT_EQ(fewest.cuts.size(), best.cuts.size());
      // One rule for ties, whatever the form: that of fewer segments and the row of the number it has agree.
      const auto rows = best_splits(instance.problem, Cost(instance.cost), most, objective);
      ASSERT_EQ(rows.back().cuts, fewest.cuts);
      ASSERT_EQ(rows[fewest.cuts.size() - 1].cuts, fewest.cuts);
    }
  }
}

TEST(SplitOptimum, OfEqualEndsThatWithTheMostTimeToSpare) {
  // The last segment ends at 23 at the earliest, alone. What is before it must end by 20: the first three at once from
  // 12 on take 11, too long. The second may hold gradients 1 and 2, from 12 to 20, just in time; or 2 alone, from 12 or
  // the end of {0, 1} at 1 + 7 = 8 on to 17.
  const SplitProblem problem(std::vector<Seconds>{0, 1, 12, 20}, std::vector<Bytes>{3, 3, 4, 2});
  const AffineCost cost{1, 1};
  EXPECT_EQ(best_split(problem, cost, 4, Objective::communication).cuts, (Cuts{1, 2, 3}));
  EXPECT_EQ(best_split(problem, Cost(cost), 4, Objective::communication).cuts, (Cuts{1, 2, 3}));
  EXPECT_DOUBLE_EQ(best_split(problem, cost).finish, 23);
}

// One gradient and then two end at 19 + 1.4e-11, two and then one at 19: nearly alike, but what comes first may not
// take longer than it does. One segment of all takes 100.
TEST(SplitOptimum, OfNearlyEqualEndsOneThatCanBe) {
  const SplitProblem problem(std::vector<Seconds>{0, 0, 0}, std::vector<Bytes>{1, 2, 4});
  const std::map<Bytes, Seconds> costs{{1, 10}, {2, 50}, {3, 12}, {4, 7}, {6, 9 + 19 * 0.75e-12}, {7, 100}};
  const Split split =
      best_split(problem, Cost([&](Bytes bytes) { return costs.at(bytes); }), 2, Objective::communication);
  EXPECT_EQ(split.cuts, (Cuts{1, 2}));
  EXPECT_DOUBLE_EQ(split.finish, 19);
}

TEST(SplitOptimum, NearlyEqualEndsAsBruteForceHasThem) {
  std::mt19937_64 random(12);
  for (int i = 0; i < instances / 4; ++i) {
    const Instance instance = random_instance(random, 9);
    const std::uint64_t seed = random();
    const Cost cost = [&, seed](Bytes bytes) {
      const double hair = static_cast<double>((bytes * 2'654'435'761U ^ seed) % 11) * 2e-13;
      return instance.cost(bytes) * (1 + hair);
    };
    for (const Objective objective : objectives) {
      SCOPED_TRACE(fmt::format("instance {}, objective {}", i, static_cast<int>(objective)));
      const std::vector<Split> found = best_splits(instance.problem, cost, 4, objective);
      const Seconds best = brute_force(instance.problem, cost, objective, 4).time(objective);
      ASSERT_TRUE(same(found.back().time(objective), best));
    }
  }
}

TEST(SplitOptimum, UpdatesMoveTheCut) {
  // Ready at 0, 10; 4 bytes each at a byte per second without start-up. Both at once end at 18, one by one at 4 and 14.
  // Updates of 9 and 1 s: one by one at max(4 + 9 + 1, 14 + 1) = 15, then a rest of 2.
  const std::vector<Seconds> ready{0, 10};
  const std::vector<Bytes> bytes{4, 4};
  const SplitProblem problem(ready, bytes, {.of_gradients = {9, 1}, .rest = 2});
  const AffineCost cost{0, 1};
  const Split split = best_split(problem, cost, 8, Objective::step);
  EXPECT_EQ(split.cuts, (Cuts{0, 1}));
  EXPECT_DOUBLE_EQ(split.finish, 14);
  EXPECT_DOUBLE_EQ(split.step, 17);
  // With updates of 12 s for the first the second no longer counts: 4 + 13 + 2. The bound is the same: gradient 0 is
  // reduced at 4 at the earliest.
  const SplitProblem first(ready, bytes, {.of_gradients = {12, 1}, .rest = 2});
  EXPECT_DOUBLE_EQ(best_split(first, cost, 8, Objective::step).step, 19);
  EXPECT_DOUBLE_EQ(lower_bound(first, cost, Objective::step).time, 19);
  EXPECT_EQ(lower_bound(first, cost, Objective::step).gradient, 0U);
  const Split one = best_split(first, cost, 1, Objective::step);
  EXPECT_DOUBLE_EQ(one.step, 18 + 13 + 2);
  const std::vector<SegmentTime> segments = timeline(first, cost, {0, 1});
  EXPECT_DOUBLE_EQ(segments[0].followed, 16);
  EXPECT_DOUBLE_EQ(segments[1].followed, 17);
  const CriticalChain chain = critical_chain(first, segments, Objective::step);
  ASSERT_EQ(chain.segments.size(), 1U);
  EXPECT_EQ(chain.segments.front().last, 0U);
  EXPECT_DOUBLE_EQ(chain.followers, 13);
  EXPECT_EQ(critical_chain(first, segments, Objective::communication).segments.front().last, 1U);
}

TEST(SplitOptimum, CostsThatJumpEqualBruteForce) {
  std::mt19937_64 random(4);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 10);
    const std::vector<CostPoint> points = random_curve(random, 0);
    const SegmentCost cost = interpolated(points, random() % 2 == 0 ? 0 : 0.05);
    ASSERT_TRUE(cost.parts_rise());
    ASSERT_TRUE(same_time(best_split(instance.problem, cost).finish,
                          brute_force(instance.problem, cost.cost, Objective::communication).finish))
        << i;
    const SegmentCost any_form(cost.cost);
    for (const Objective objective : objectives) {
      SCOPED_TRACE(fmt::format("instance {}, objective {}", i, static_cast<int>(objective)));
      const auto within = best_splits(instance.problem, cost, 3, objective);
      for (std::uint32_t k = 1; k <= 3; ++k) {
        const Split best = brute_force(instance.problem, cost.cost, objective, k);
        ASSERT_TRUE(same(within[k - 1].time(objective), best.time(objective))) << "k " << k;
        ASSERT_EQ(within[k - 1].cuts.size(), best.cuts.size()) << "k " << k;
      }
      ASSERT_EQ(best_split(instance.problem, any_form, 3, objective).cuts, within[2].cuts);
    }
  }
}

TEST(SplitOptimum, MinorantsBoundEveryCurve) {
  std::mt19937_64 random(5);
  for (int i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random, 8);
    // Points up to all bytes, straight between: the hull's lines are below the curve everywhere.
    const std::vector<CostPoint> points = random_curve(random, instance.problem.total() + 1);
    const SegmentCost cost = interpolated(points);
    for (const Objective objective : objectives) {
      const Seconds best = brute_force(instance.problem, cost.cost, objective).time(objective);
      ASSERT_LE(lower_bound(instance.problem, affine_minorants(points), objective).time, best * (1 + 1e-12)) << i;
    }
  }
}

TEST(SplitOptimum, ATableGoesThroughItsPoints) {
  const std::vector<CostPoint> points{{10, 5}, {20, 6}, {30, 7.01}, {40, 4}, {50, 6}, {60, 5}};
  const SegmentCost exact = interpolated(points);
  for (const CostPoint& point : points) EXPECT_DOUBLE_EQ(exact.cost(point.bytes), point.time) << point.bytes;
  EXPECT_DOUBLE_EQ(exact.cost(0), 4);      // goes on like the first two
  EXPECT_DOUBLE_EQ(exact.cost(15), 5.5);   // straight between
  EXPECT_DOUBLE_EQ(exact.cost(39), 7.01);  // stays until it drops
  EXPECT_DOUBLE_EQ(exact.cost(45), 5);
  EXPECT_DOUBLE_EQ(exact.cost(1000), 5);  // behind a drop nothing is known
  EXPECT_EQ(exact.parts.size(), 6U);
  // One line over the first three points misses the second by 0.005.
  const SegmentCost coarse = interpolated(points, 1e-3);
  EXPECT_EQ(coarse.parts.size(), 5U);
  EXPECT_DOUBLE_EQ(coarse.cost(20), 6.005);
  EXPECT_DOUBLE_EQ(coarse.cost(30), 7.01);
  // Where the first two points lead below 0, small segments cost nothing.
  EXPECT_DOUBLE_EQ(interpolated(std::vector<CostPoint>{{10, 1}, {20, 3}}).cost(4), 0);
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
    const LowerBound bound = lower_bound(instance.problem, affine_minorants(points), Objective::step);
    for (const Split& split : splits) ASSERT_LE(bound.time, split.step * (1 + 1e-12)) << i;
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
    EXPECT_LE(fast.finish,
              best_split(instance.problem, instance.cost, 8, Objective::communication).finish * (1 + 1e-12));
    const Split eight = best_split(instance.problem, instance.cost, 8, Objective::step);
    EXPECT_LE(eight.step, timed(instance.problem, instance.cost, fast.cuts.size() <= 8 ? fast.cuts : eight.cuts).step *
                              (1 + 1e-12));
    EXPECT_GE(eight.step, lower_bound(instance.problem, instance.cost, Objective::step).time * (1 - 1e-12));
  }
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(fmt::format("table {}", i));
    const Instance instance = random_instance(random, 300);
    const SegmentCost cost = interpolated(random_curve(random, instance.problem.total()));
    const Seconds step = best_split(instance.problem, cost, 5, Objective::step).step;
    EXPECT_TRUE(same(step, best_split(instance.problem, SegmentCost(cost.cost), 5, Objective::step).step));
  }
}

TEST(SplitOptimum, ASearchTellsWhereItIs) {
  std::mt19937_64 random(8);
  const Instance instance = random_instance(random, 200);
  std::vector<Seconds> above;
  std::vector<Seconds> at_most;
  const Split best = best_split(instance.problem, instance.cost, 3, Objective::step, [&](Seconds low, Seconds high) {
    above.push_back(low);
    at_most.push_back(high);
  });
  ASSERT_FALSE(above.empty());
  EXPECT_LE(above.back(), best.step);
  EXPECT_GE(at_most.back(), best.step * (1 - 1e-9));
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
  EXPECT_THROW(static_cast<void>(brute_force(SplitProblem(std::vector<Seconds>(25, 0), std::vector<Bytes>(25, 1)),
                                             AffineCost{}, Objective::step)),
               Error);
  EXPECT_THROW(static_cast<void>(best_split(problem, AffineCost{}, 0, Objective::step)), Error);
  EXPECT_THROW(SplitProblem(ready, bytes, {.of_gradients = {1}}), Error);
  EXPECT_THROW(SplitProblem(ready, bytes, {.of_gradients = {1, -1}}), Error);
  EXPECT_THROW(SplitProblem(ready, bytes, {.rest = -1}), Error);
  EXPECT_THROW(static_cast<void>(affine_minorants({})), Error);
  EXPECT_THROW(static_cast<void>(interpolated(std::vector<CostPoint>{{1, 1}})), Error);
  EXPECT_THROW(static_cast<void>(interpolated(std::vector<CostPoint>{{1, 1}, {1, 2}})), Error);
}

// What follows everything, such as the wait for a batch, may take longer than all else by any factor.
TEST(Optimum, ALongRestChangesNoSplit) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 2000; ++round) {
    const Instance instance = random_instance(random, 8);
    std::vector<Seconds> ready;
    std::vector<Bytes> bytes;
    Followers followers;
    for (std::uint32_t i = 0; i < instance.problem.size(); ++i) {
      ready.push_back(instance.problem.ready(i + 1) * 1e-6);
      bytes.push_back(instance.problem.bytes(i, i + 1));
      followers.of_gradients.push_back((instance.problem.followers_from(i) - instance.problem.followers_from(i + 1)) *
                                       1e-6);
    }
    const AffineCost cost{instance.cost.alpha * 1e-6, instance.cost.beta * 1e-6};
    const SplitProblem bare(ready, bytes, followers);
    for (const Seconds rest : {1.0, 1e3, 1e9}) {
      followers.rest = rest;
      const SplitProblem problem(ready, bytes, followers);
      const std::vector<Split> splits = best_splits(problem, cost, problem.size(), Objective::step);
      const std::vector<Split> expected = best_splits(bare, cost, problem.size(), Objective::step);
      for (std::uint32_t k = 0; k < problem.size(); ++k) {
        EXPECT_EQ(splits[k].cuts, expected[k].cuts) << round;
        EXPECT_EQ(splits[k].step, expected[k].step + rest) << round;
      }
    }
  }
}

}  // namespace
}  // namespace hcclsim::study
