#include "hccl/strategies/exact.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/hccl/strategies/random_costs.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

ScalarCost by(const SearchOptions& options) {
  return [&options](const SearchCost& cost) { return objective(cost, options); };
}

TEST(ExactSearch, IsTheBestOfAllChoicesOfSmallGraphs) {
  const SearchOptions options;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    test::RandomCosts random(seed);
    const CostGraph graph = random.any(2 + random.below(5), 3, random.below(9));
    const ExactResult result = exact_search(graph, by(options), {});
    EXPECT_EQ(result.cost, test::least_of_all(graph, options, no_limit)) << "seed " << seed;
    EXPECT_EQ(result.cost, objective(cost_of(graph, result.choice), options)) << "seed " << seed;
    EXPECT_TRUE(result.is_best());
  }
}

TEST(ExactSearch, IsTheBestOfThoseThatFitIntoMemory) {
  const SearchOptions options;
  std::uint32_t refused = 0;
  std::uint32_t dearer = 0;
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    test::RandomCosts random(1000 + seed);
    const CostGraph graph = random.any(2 + random.below(4), 3, random.below(7));
    const double free = exact_search(graph, by(options), {}).memory;
    const double memory = free * (0.5 + 0.125 * random.below(5));
    const std::optional<double> least = test::least_of_all(graph, options, memory);
    if (!least.has_value()) {
      ++refused;
      EXPECT_NE(test::refusal("search", [&] { (void)exact_search(graph, by(options), {.memory = memory}); })
                    .find("no strategy fits"),
                std::string::npos);
      continue;
    }
    const ExactResult result = exact_search(graph, by(options), {.memory = memory});
    EXPECT_EQ(result.cost, *least) << "seed " << seed;
    EXPECT_LE(result.memory, memory);
    if (result.memory < free) ++dearer;
  }
  // The limits have been felt.
  EXPECT_GT(refused, 3U);
  EXPECT_GT(dearer, 5U);
}

TEST(ExactSearch, ProvesABoundWhereItDropsChoices) {
  const SearchOptions options;
  std::uint32_t open = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    test::RandomCosts random(2000 + seed);
    const CostGraph graph = random.any(7, 3, 12);
    const ExactResult narrow = exact_search(graph, by(options), {.width = 2});
    const double best = exact_search(graph, by(options), {}).cost;
    EXPECT_LE(narrow.bound, best) << "seed " << seed;
    EXPECT_GE(narrow.cost, best) << "seed " << seed;
    if (!narrow.is_best()) ++open;
  }
  EXPECT_GT(open, 0U);
}

TEST(ExactSearch, CountsWhatTheCallerCounts) {
  CostGraph graph;
  graph.nodes.push_back({.name = "a", .candidates = {{1}, {2}}, .costs = {{.computation = 1}, {.computation = 9}}});
  graph.nodes.back().costs[0].memory = 5;
  graph.nodes.back().costs[1].memory = 2;
  const auto memory = [](const SearchCost& cost) { return cost.memory; };
  EXPECT_EQ(exact_search(graph, memory, {}).choice, Choice{1});
  EXPECT_EQ(exact_search(graph, memory, {}).cost, 2);
  EXPECT_EQ(exact_search(graph, [](const SearchCost& cost) { return cost.computation; }, {}).choice, Choice{0});
}

TEST(ExactSearch, GrowsWithTheLengthOfAChainNotWithItsChoices) {
  const SearchOptions options;
  test::RandomCosts random(7);
  const CostGraph shorter = random.residual(50, 4);
  const CostGraph longer = random.residual(100, 4);
  const std::uint64_t once = exact_search(shorter, by(options), {}).examined;
  const std::uint64_t twice = exact_search(longer, by(options), {}).examined;
  EXPECT_LE(twice, 2 * once + 100);
}

TEST(ExactSearch, RefusesNoWidth) {
  test::RandomCosts random(1);
  const CostGraph graph = random.chain(2, 2);
  const SearchOptions options;
  EXPECT_EQ(test::refusal("search", [&] { (void)exact_search(graph, by(options), {.width = 0}); }),
            "the exact search keeps at least 1 choice at a border, got 0");
}

}  // namespace
}  // namespace hcclsim::hccl
