#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

#include "study/run/split/optimum.hpp"
#include "study/run/split/shared_link.hpp"
#include "study/run/split/two_links.hpp"

namespace hcclsim::study {
namespace {

struct TwoStreamInstance {
  SplitProblem problem;
  std::array<AffineCost, 2> costs;
};

TwoStreamInstance random_two_streams(std::mt19937_64& random, std::uint32_t most_gradients) {
  const auto n = static_cast<std::uint32_t>(1 + random() % most_gradients);
  std::vector<Seconds> ready(n);
  std::vector<Bytes> bytes(n);
  Seconds date = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    date += static_cast<double>(random() % 5);
    ready[i] = date;
    bytes[i] = random() % 8;
  }
  const auto cost = [&] {
    return AffineCost{static_cast<double>(random() % 5), static_cast<double>(1 + random() % 8) / 4};
  };
  return {SplitProblem(ready, bytes), {cost(), cost()}};
}

/// With a point at every size that a segment can have.
SampledCost sampled(const SplitProblem& problem, const SegmentCost& cost) {
  SampledCost result{cost};
  for (Bytes bytes = 0; bytes <= problem.total(); ++bytes) result.points.push_back({bytes, cost.cost(bytes)});
  return result;
}

/// Between points at random sizes, up to all bytes; it jumps.
SampledCost random_table(std::mt19937_64& random, Bytes total) {
  std::vector<CostPoint> points{{0, static_cast<double>(random() % 9)}};
  while (points.back().bytes < total + 1) {
    points.push_back({points.back().bytes + 1 + random() % 9, static_cast<double>(random() % 40) / 4});
  }
  return {{interpolated(points)}, points};
}

/// Every split of up to so many segments, and every assignment.
Seconds best_of_all(const SplitProblem& problem, const std::array<Cost, 2>& costs, std::uint32_t most_segments) {
  Seconds best = std::numeric_limits<Seconds>::infinity();
  const std::uint32_t n = problem.size();
  for (std::uint32_t mask = 0; mask < 1U << (n - 1); ++mask) {
    if (std::popcount(mask) + 1U > most_segments) continue;
    for (std::uint32_t streams = 0; streams < 1U << n; ++streams) {
      std::array<Seconds, 2> ends{0, 0};
      std::uint32_t begin = 0;
      for (std::uint32_t last = 0; last < n; ++last) {
        if (last + 1 < n && ((mask >> last) & 1U) == 0) continue;
        const std::size_t stream = (streams >> last) & 1U;
        ends.at(stream) =
            std::max(ends.at(stream), problem.ready(last + 1)) + costs.at(stream)(problem.bytes(begin, last + 1));
        begin = last + 1;
      }
      best = std::min(best, std::max(ends[0], ends[1]));
    }
  }
  return best;
}

/// That the split ends when it says on streams of these costs.
void expect_honest(const TwoLinkSplit& split, const SplitProblem& problem, const std::array<Cost, 2>& costs) {
  std::array<Seconds, 2> ends{0, 0};
  std::uint32_t begin = 0;
  for (std::size_t s = 0; s < split.cuts.size(); ++s) {
    Seconds& end = ends.at(split.streams[s]);
    end = std::max(end, problem.ready(split.cuts[s] + 1)) +
          costs.at(split.streams[s])(problem.bytes(begin, split.cuts[s] + 1));
    begin = split.cuts[s] + 1;
  }
  ASSERT_EQ(begin, problem.size());
  ASSERT_DOUBLE_EQ(std::max(ends[0], ends[1]), split.finish);
}

TEST(TwoStreams, OnLinksOfTheirOwnEqualsBruteForce) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    SCOPED_TRACE(fmt::format("instance {}", i));
    const TwoStreamInstance instance = random_two_streams(random, 6);
    const SplitProblem& problem = instance.problem;
    // Links that differ, links that are alike, and any cost.
    const SampledCost first =
        i % 3 == 2 ? random_table(random, problem.total()) : sampled(problem, SegmentCost::of(instance.costs[0]));
    const SampledCost other = sampled(problem, SegmentCost::of(instance.costs[1]));
    const SampledCost& second = i % 3 == 0 ? other : first;
    const auto most_segments = static_cast<std::uint32_t>(1 + random() % 6);
    const std::array<Cost, 2> costs{first.cost.cost, second.cost.cost};
    const TwoLinkSplit split = best_split_on_two_links(problem, first, second, most_segments);
    const Seconds best = best_of_all(problem, costs, most_segments);
    ASSERT_NEAR(split.finish, best, 1e-9);
    ASSERT_TRUE(split.exact);
    ASSERT_LE(bound_on_two_links(problem, first, second), best + 1e-9);
    ASSERT_LE(split.cuts.size(), most_segments);
    expect_honest(split, problem, costs);
  }
}

TEST(TwoStreams, WhatIsTooManyWaysIsBracketed) {
  // Hundreds of gradients of odd sizes, all ready at once: PARTITION.
  std::mt19937_64 random(14);
  std::vector<Bytes> bytes;
  for (int g = 0; g < 60; ++g) bytes.push_back(1'000'000 + random() % 9'000'000);
  const SplitProblem problem(std::vector<Seconds>(bytes.size(), 1), bytes);
  const AffineCost line{1e-9, 1e-9};
  const SampledCost cost{SegmentCost::of(line), {{1, line(1)}, {problem.total(), line(problem.total())}}};
  const TwoLinkSplit split = best_split_on_two_links(problem, cost, cost, 12);
  EXPECT_FALSE(split.exact);
  EXPECT_LT(split.bound, split.finish);
  EXPECT_LT(split.finish, split.bound * (1 + 1e-6));
  // Half of the bytes on each link.
  EXPECT_NEAR(split.bound, 1 + line(problem.total() / 2), 1e-8);
  expect_honest(split, problem, {line, line});
}

TEST(TwoStreams, ASharedLinkHidesStartUpTimesOnly) {
  const SharedCost shared = SharedCost::of({SegmentCost::of({3, 1})});
  // Two segments at once: both start up until 3, then share the link until 3 + 4 + 4.
  const SplitProblem problem(std::vector<Seconds>{0, 0}, std::vector<Bytes>{4, 4});
  EXPECT_DOUBLE_EQ(finish_on_shared_link(problem, shared, {0, 1}), 11);
  EXPECT_DOUBLE_EQ(finish_on_shared_link(problem, shared, {1}), 11);
  // A third one waits until the first has ended: 3 → 11 (both of 4 end), starts up until 14, 2 bytes.
  const SplitProblem three(std::vector<Seconds>{0, 0, 0}, std::vector<Bytes>{4, 4, 2});
  EXPECT_DOUBLE_EQ(finish_on_shared_link(three, shared, {0, 1, 2}), 16);
  // The first is alone on the link until 5, then shares it with the second.
  const SplitProblem late(std::vector<Seconds>{0, 2}, std::vector<Bytes>{4, 4});
  EXPECT_DOUBLE_EQ(finish_on_shared_link(late, shared, {0, 1}), 11);
}

TEST(TwoStreams, TheBracketHoldsTheOptimum) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(fmt::format("instance {}", i));
    const TwoStreamInstance instance = random_two_streams(random, 10);
    const SegmentCost cost = SegmentCost::of(instance.costs[0]);
    const Bracket bracket =
        bracket_on_shared_link(instance.problem, sampled(instance.problem, cost), instance.problem.size());
    EXPECT_TRUE(bracket.exact);
    ASSERT_LE(bracket.bound, bracket.best_found.finish * (1 + 1e-12));
    // One stream can do no better than two.
    ASSERT_LE(bracket.best_found.finish, best_split(instance.problem, instance.costs[0]).finish * (1 + 1e-12));
  }
}

TEST(TwoStreams, TheBracketIsThatOfAnyCost) {
  std::mt19937_64 random(15);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(fmt::format("instance {}", i));
    const TwoStreamInstance instance = random_two_streams(random, 8);
    const SampledCost table = random_table(random, instance.problem.total());
    const Bracket bracket = bracket_on_shared_link(instance.problem, table, instance.problem.size());
    ASSERT_LE(bracket.bound, bracket.best_found.finish * (1 + 1e-12));
    // A segment alone takes what the cost says.
    const SharedCost shared = SharedCost::of(table);
    const Cuts one{instance.problem.size() - 1};
    ASSERT_NEAR(finish_on_shared_link(instance.problem, shared, one),
                timed(instance.problem, table.cost.cost, one).finish, 1e-9);
  }
}

TEST(TwoStreams, LargeProblemsAreSearchedFromTheBestOfOneStream) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(fmt::format("instance {}", i));
    std::vector<Seconds> ready;
    std::vector<Bytes> bytes;
    for (int g = 0; g < 60; ++g) {
      ready.push_back(g);
      bytes.push_back(random() % 8);
    }
    const SplitProblem problem(ready, bytes);
    const Bracket bracket = bracket_on_shared_link(problem, sampled(problem, SegmentCost::of({2, 0.25})), 8);
    EXPECT_FALSE(bracket.exact);
    EXPECT_LE(bracket.best_found.cuts.size(), 8U);
    EXPECT_LE(bracket.bound, bracket.best_found.finish * (1 + 1e-12));
    const Split on_one = best_split(problem, AffineCost{2, 0.25}, 8, Objective::communication);
    EXPECT_LE(bracket.best_found.finish, on_one.finish * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace hcclsim::study
