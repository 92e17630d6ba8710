#include "study/compare/strategies/least_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "tests/hccl/strategies/random_costs.hpp"

/// The least step of all choices, against all that there are.
namespace hcclsim::study {
namespace {

using hccl::Choice;

constexpr Seconds none = std::numeric_limits<Seconds>::infinity();

/// Random candidates, some of which must not meet. A step takes what candidates and edges cost, and something besides
/// that only a simulation tells.
struct RandomSteps {
  hccl::CostGraph costs;
  std::vector<std::vector<Seconds>> least{};
  std::uint64_t seed = 0;

  explicit RandomSteps(std::uint32_t number) : seed(number) {
    test::RandomCosts random(number);
    costs = random.any(2 + random.below(5), 3, random.below(8));
    for (hccl::CostEdge& edge : costs.edges) {
      for (auto& cost : edge.costs) {
        if (random.below(5) == 0) cost.reset();
      }
    }
    for (const hccl::CostNode& node : costs.nodes) {
      std::vector<Seconds>& of_node = least.emplace_back();
      for (const hccl::SearchCost& cost : node.costs) of_node.push_back(cost.computation);
    }
  }

  /// Infinite: candidates must not meet, or need more memory.
  [[nodiscard]] Seconds step(const Choice& choice, double memory = none) const {
    try {
      const hccl::SearchCost cost = cost_of(costs, choice);
      std::uint64_t hash = seed;
      for (const std::uint32_t candidate : choice) hash = hash * 31 + candidate + 1;
      return cost.memory > memory ? none : cost.computation + static_cast<Seconds>(hash % 40);
    } catch (const Error&) {
      return none;
    }
  }

  [[nodiscard]] std::vector<Choice> all() const {
    std::vector<Choice> choices{Choice(costs.nodes.size(), 0)};
    for (std::size_t node = 0; node < costs.nodes.size(); ++node) {
      for (std::size_t i = choices.size(); i-- > 0;) {
        for (std::uint32_t candidate = 1; candidate < costs.nodes[node].candidates.size(); ++candidate) {
          choices.push_back(choices[i]);
          choices.back()[node] = candidate;
        }
      }
    }
    return choices;
  }

  [[nodiscard]] Seconds least_step(double memory = none) const {
    Seconds least_of_all = none;
    for (const Choice& choice : all()) least_of_all = std::min(least_of_all, step(choice, memory));
    return least_of_all;
  }

  [[nodiscard]] LeastChoice found(std::uint64_t most, const std::vector<KnownChoice>& known, Seconds limit,
                                  double memory = none) const {
    return least_choice({.costs = costs, .least = least, .memory = memory, .most = most}, known, limit,
                        [&](const std::vector<Choice>& choices) {
                          std::vector<Seconds> steps;
                          for (const Choice& choice : choices) steps.push_back(step(choice, memory));
                          return steps;
                        });
  }
};

constexpr std::uint32_t graphs = 300;

TEST(LeastChoice, IsThatOfAllChoices) {
  std::uint64_t simulated = 0;
  std::uint64_t all = 0;
  for (std::uint32_t number = 0; number < graphs; ++number) {
    const RandomSteps random(number);
    const Seconds least = random.least_step();
    const LeastChoice found = random.found(100'000, {}, none);
    ASSERT_EQ(found.best.has_value(), least < none) << number;
    EXPECT_EQ(found.bound, least) << number;
    if (least == none) continue;
    EXPECT_EQ(found.best->step, least) << number;
    EXPECT_EQ(random.step(found.best->choice), least) << number;
    simulated += found.simulated;
    all += random.all().size();
  }
  EXPECT_LT(simulated, all);  // bounds have been felt
}

// It goes on from what is known, and does not look at what cannot be better than a step that others have.
TEST(LeastChoice, BeginsAtWhatIsKnown) {
  for (std::uint32_t number = 0; number < graphs; ++number) {
    const RandomSteps random(number);
    const Seconds least = random.least_step();
    const Choice first = random.all().back();
    const LeastChoice found = random.found(100'000, {{first, random.step(first)}}, random.step(first));
    EXPECT_EQ(found.bound, least) << number;
    EXPECT_EQ(found.best.has_value() ? found.best->step : none, least) << number;
    const LeastChoice nothing = random.found(100'000, {}, least / 2);
    EXPECT_FALSE(nothing.best.has_value()) << number;
    EXPECT_LE(nothing.bound, least) << number;
  }
}

TEST(LeastChoice, HasABoundWhereNotAllMayBeSimulated) {
  std::uint32_t open = 0;
  for (std::uint32_t number = 0; number < graphs; ++number) {
    const RandomSteps random(number);
    const Seconds least = random.least_step();
    for (const std::uint64_t most : {1, 5, 20}) {
      const LeastChoice found = random.found(most, {}, none);
      EXPECT_LE(found.bound, least) << number;
      EXPECT_LE(found.simulated, most) << number;
      const Seconds best = found.best.has_value() ? found.best->step : none;
      EXPECT_GE(best, least) << number;
      if (best < none && found.bound < best) ++open;
    }
  }
  EXPECT_GT(open, 50U);
}

TEST(LeastChoice, FitsIntoMemory) {
  std::uint32_t dearer = 0;
  for (std::uint32_t number = 0; number < graphs; ++number) {
    const RandomSteps random(number);
    const double memory = 30.0 * static_cast<double>(random.costs.nodes.size());
    const Seconds least = random.least_step(memory);
    const LeastChoice found = random.found(100'000, {}, none, memory);
    EXPECT_EQ(found.bound, least) << number;
    EXPECT_EQ(found.best.has_value() ? found.best->step : none, least) << number;
    if (least > random.least_step()) ++dearer;
  }
  EXPECT_GT(dearer, 10U);
}

}  // namespace
}  // namespace hcclsim::study
