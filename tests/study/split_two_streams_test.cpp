#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

#include "study/split/optimum.hpp"
#include "study/split/two_streams.hpp"

namespace hcclsim::study {
namespace {

struct Instance {
  SplitProblem problem;
  std::array<AffineCost, 2> costs;
};

Instance random_instance(std::mt19937_64& random, std::uint32_t most_gradients) {
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

/// Every split of up to so many segments, and every assignment.
Seconds best_of_all(const SplitProblem& problem, const std::array<AffineCost, 2>& costs, std::uint32_t most_segments) {
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

TEST(TwoStreams, OnLinksOfTheirOwnEqualsBruteForce) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    const Instance instance = random_instance(random, 6);
    const auto most_segments = static_cast<std::uint32_t>(1 + random() % 6);
    const StreamedSplit split = best_split_on_two_links(instance.problem, instance.costs, most_segments);
    ASSERT_NEAR(split.finish, best_of_all(instance.problem, instance.costs, most_segments), 1e-9) << i;
    ASSERT_LE(split.cuts.size(), most_segments);
    // The split that is returned ends then.
    std::array<Seconds, 2> ends{0, 0};
    std::uint32_t begin = 0;
    for (std::size_t s = 0; s < split.cuts.size(); ++s) {
      Seconds& end = ends.at(split.streams[s]);
      end = std::max(end, instance.problem.ready(split.cuts[s] + 1)) +
            instance.costs.at(split.streams[s])(instance.problem.bytes(begin, split.cuts[s] + 1));
      begin = split.cuts[s] + 1;
    }
    ASSERT_EQ(begin, instance.problem.size());
    ASSERT_DOUBLE_EQ(std::max(ends[0], ends[1]), split.finish);
  }
}

TEST(TwoStreams, ASharedLinkHidesStartUpTimesOnly) {
  // Two segments at once: both start up until 3, then share the link until 3 + 4 + 4.
  const SplitProblem problem(std::vector<Seconds>{0, 0}, std::vector<Bytes>{4, 4});
  EXPECT_DOUBLE_EQ(finish_on_shared_link(problem, {3, 1}, {0, 1}), 11);
  EXPECT_DOUBLE_EQ(finish_on_shared_link(problem, {3, 1}, {1}), 11);
  // A third one waits until the first has ended: 3 → 11 (both of 4 end), starts up until 14, 2 bytes.
  const SplitProblem three(std::vector<Seconds>{0, 0, 0}, std::vector<Bytes>{4, 4, 2});
  EXPECT_DOUBLE_EQ(finish_on_shared_link(three, {3, 1}, {0, 1, 2}), 16);
  // The first is alone on the link until 5, then shares it with the second.
  const SplitProblem late(std::vector<Seconds>{0, 2}, std::vector<Bytes>{4, 4});
  EXPECT_DOUBLE_EQ(finish_on_shared_link(late, {3, 1}, {0, 1}), 11);
}

TEST(TwoStreams, TheBracketHoldsTheOptimum) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 2000; ++i) {
    const Instance instance = random_instance(random, 10);
    const AffineCost& cost = instance.costs[0];
    const Bracket bracket = bracket_on_shared_link(instance.problem, cost, instance.problem.size());
    EXPECT_TRUE(bracket.exact);
    ASSERT_LE(bracket.bound, bracket.best_found.finish * (1 + 1e-12)) << i;
    // One stream can do no better than two.
    ASSERT_LE(bracket.best_found.finish, best_split(instance.problem, cost).finish * (1 + 1e-12)) << i;
  }
}

TEST(TwoStreams, LargeProblemsAreSearchedFromTheBestOfOneStream) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 20; ++i) {
    std::vector<Seconds> ready;
    std::vector<Bytes> bytes;
    for (int g = 0; g < 60; ++g) {
      ready.push_back(g);
      bytes.push_back(random() % 8);
    }
    const SplitProblem problem(ready, bytes);
    const Bracket bracket = bracket_on_shared_link(problem, {2, 0.25}, 8);
    EXPECT_FALSE(bracket.exact);
    EXPECT_LE(bracket.best_found.cuts.size(), 8U);
    EXPECT_LE(bracket.bound, bracket.best_found.finish * (1 + 1e-12));
    EXPECT_LE(bracket.best_found.finish, best_splits(problem, AffineCost{2, 0.25}, 8).back().finish * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace hcclsim::study
