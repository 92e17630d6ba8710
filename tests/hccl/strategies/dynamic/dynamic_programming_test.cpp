#include "hccl/strategies/dynamic/dynamic_programming.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "hccl/strategies/dynamic/cost_list.hpp"
#include "hccl/strategies/exact.hpp"
#include "tests/hccl/strategies/random_costs.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using testing::HasSubstr;

constexpr double unlimited = std::numeric_limits<double>::infinity();

TEST(DynamicProgramming, IsTheBestChoiceOfChains) {
  const SearchOptions options;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    test::RandomCosts random(seed);
    const CostGraph graph = random.chain(1 + random.below(6), 4);
    const DynamicProgrammingResult result = dynamic_programming(graph, options);
    EXPECT_EQ(objective(cost_of(graph, result.choice), options), test::least_of_all(graph, options, unlimited))
        << "seed " << seed;
    EXPECT_EQ(result.listed, cost_of(graph, result.choice)) << "seed " << seed;
  }
}

TEST(DynamicProgramming, IsTheBestChoiceWhereBranchesJoinAgain) {
  const SearchOptions options;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    test::RandomCosts random(100 + seed);
    const CostGraph graph = random.residual(1 + random.below(3), 3);
    const DynamicProgrammingResult result = dynamic_programming(graph, options);
    EXPECT_EQ(objective(result.listed, options), test::least_of_all(graph, options, unlimited)) << "seed " << seed;
    EXPECT_EQ(result.folded.stars, 0U);
  }
}

TEST(DynamicProgramming, IsNeverBetterThanTheBestChoice) {
  SearchOptions options;
  std::uint32_t worse = 0;
  std::uint32_t folded = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    test::RandomCosts random(200 + seed);
    const CostGraph graph = random.any(6, 3, 9);
    options.triangle_star_strategy_overwrite = seed % 2 == 0;
    const DynamicProgrammingResult result = dynamic_programming(graph, options);
    const double cost = objective(cost_of(graph, result.choice), options);
    const double best = exact_search(graph, [&](const SearchCost& c) { return objective(c, options); }, {}).cost;
    EXPECT_GE(cost, best) << "seed " << seed;
    if (cost > best) ++worse;
    folded += result.folded.triangles + result.folded.stars;
  }
  // Triangles and stars were there, and they are where it can go wrong.
  EXPECT_GT(folded, 20U);
  EXPECT_GT(worse, 0U);
}

TEST(DynamicProgramming, TriesTheRulesInTheirOrder) {
  test::RandomCosts random(3);
  const SearchOptions options;
  // a → b → c, a → c: b becomes an edge, the two edges become one; then a source with one successor.
  FoldingCounts counts = dynamic_programming(random.residual(1, 2), options).folded;
  EXPECT_EQ(counts.operators, 1U);
  EXPECT_EQ(counts.edges, 1U);
  EXPECT_EQ(counts.merges, 1U);
  EXPECT_EQ(counts.contractions + counts.triangles + counts.stars, 0U);

  // Two sources of one operator, and two sinks of it: the sources merge, then a sink contracts or merges.
  CostGraph cross;
  for (std::uint32_t i = 0; i < 5; ++i) cross.nodes.push_back(random.node(i, 2));
  for (const std::uint32_t source : {0U, 1U}) random.add_edge(cross, source, 2);
  for (const std::uint32_t sink : {3U, 4U}) random.add_edge(cross, 2, sink);
  counts = dynamic_programming(cross, options).folded;
  EXPECT_EQ(counts.merges + counts.contractions, 4U);
  EXPECT_EQ(counts.merges, 3U);

  // o → l, o → r, l → r, l → x, r → y, s → x, s → y: nothing but o can be folded first, as a triangle.
  CostGraph triangle;
  for (std::uint32_t i = 0; i < 4; ++i) triangle.nodes.push_back(random.node(i, 2));
  random.add_edge(triangle, 0, 1);
  random.add_edge(triangle, 0, 2);
  random.add_edge(triangle, 1, 2);
  random.add_edge(triangle, 1, 3);
  random.add_edge(triangle, 2, 3);
  counts = dynamic_programming(triangle, options).folded;
  EXPECT_EQ(counts.triangles, 1U);
  EXPECT_EQ(counts.operators, 1U);

  // Two sources of the same three operators: a star.
  CostGraph star;
  for (std::uint32_t i = 0; i < 5; ++i) star.nodes.push_back(random.node(i, 2));
  for (const std::uint32_t source : {0U, 1U}) {
    for (const std::uint32_t sink : {2U, 3U, 4U}) random.add_edge(star, source, sink);
  }
  counts = dynamic_programming(star, options).folded;
  EXPECT_EQ(counts.stars, 1U);
}

TEST(DynamicProgramming, DecidesApartWhatDoesNotTouch) {
  test::RandomCosts random(4);
  SearchOptions options;
  CostGraph apart;
  for (std::uint32_t i = 0; i < 4; ++i) apart.nodes.push_back(random.node(i, 3));
  EXPECT_EQ(objective(dynamic_programming(apart, options).listed, options),
            test::least_of_all(apart, options, unlimited));
  options.training = false;
  EXPECT_THAT(test::refusal("search", [&] { (void)dynamic_programming(apart, options); }),
              HasSubstr("leaves 4 operators"));
  const CostGraph chain = random.chain(4, 3);
  EXPECT_EQ(objective(dynamic_programming(chain, options).listed, options),
            test::least_of_all(chain, options, unlimited));
}

TEST(DynamicProgramming, RefusesWhatDoesNotFitIntoMemory) {
  CostGraph graph;
  graph.nodes.push_back({.name = "a", .candidates = {{1}, {2}}, .costs = {{.computation = 1}, {.computation = 9}}});
  graph.nodes[0].costs[0].memory = 100;
  graph.nodes[0].costs[0].partial_communication = 7;
  graph.nodes[0].costs[1].memory = 40;
  SearchOptions options;
  options.device_memory = 100;
  EXPECT_EQ(dynamic_programming(graph, options).choice, Choice{1});  // 400 · 7 + 1 is more than 9
  options.device_memory = 39;
  EXPECT_EQ(test::refusal("search", [&] { (void)dynamic_programming(graph, options); }),
            fmt::format("no strategy fits into a memory of 39 bytes; the least that one of those left needs is 40, {}",
                        memory_advice));
  // The dearer one in both figures is gone from the lists before memory is looked at.
  graph.nodes[0].costs[0].partial_communication = 0;
  graph.nodes[0].costs[1].partial_communication = 1;
  options.device_memory = 50;
  EXPECT_THAT(test::refusal("search", [&] { (void)dynamic_programming(graph, options); }), HasSubstr("needs is 100"));
  EXPECT_EQ(exact_search(graph, [&](const SearchCost& c) { return objective(c, options); }, {.memory = 50}).choice,
            Choice{1});
}

TEST(DynamicProgramming, ApproximatesWithinEpsilonOnChains) {
  SearchOptions options;
  std::uint64_t all = 0;
  std::uint64_t thinned = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    test::RandomCosts random(300 + seed);
    const CostGraph graph = random.residual(12, 5);
    options.enable_algo_approxi = false;
    const DynamicProgrammingResult exact = dynamic_programming(graph, options);
    options.enable_algo_approxi = true;
    const DynamicProgrammingResult approximate = dynamic_programming(graph, options);
    EXPECT_GE(objective(approximate.listed, options), objective(exact.listed, options));
    all += exact.folded.sums;
    thinned += approximate.folded.sums;
  }
  EXPECT_LT(thinned, all);
}

TEST(DynamicProgramming, LooksAtPolynomiallyManySums) {
  SearchOptions options;
  options.enable_algo_approxi = true;
  test::RandomCosts random(5);
  const std::uint64_t once = dynamic_programming(random.residual(20, 4), options).folded.sums;
  const std::uint64_t twice = dynamic_programming(random.residual(40, 4), options).folded.sums;
  EXPECT_LT(twice, 8 * once);
}

TEST(CostList, KeepsWhatIsCheaperInOneOfBoth) {
  const SearchOptions options;
  const auto entry = [](double computation, double communication) {
    ListedCost listed;
    listed.cost.computation = computation;
    listed.cost.partial_communication = communication;
    return listed;
  };
  CostList list{entry(5, 5), entry(1, 9), entry(3, 9), entry(4, 6), entry(9, 5), entry(8, 2)};
  simplify(list, options);
  std::vector<std::pair<double, double>> kept;
  for (const ListedCost& listed : list) kept.emplace_back(listed.cost.computation, listed.cost.partial_communication);
  EXPECT_THAT(kept, testing::ElementsAre(std::pair(1, 9), std::pair(4, 6), std::pair(5, 5), std::pair(8, 2)));
}

}  // namespace
}  // namespace hcclsim::hccl
