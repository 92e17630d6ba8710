#include "study/compare/strategies/strategy_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/strategies/exact.hpp"
#include "hccl/strategies/strategies.hpp"
#include "models/zoo/zoo.hpp"
#include "study/compare/plans/plan_search.hpp"
#include "study/compare/strategies/strategy_seconds.hpp"
#include "study/run/experiment/plans.hpp"
#include "study/run/experiment/sharding/find_strategies.hpp"
#include "study/run/run.hpp"
#include "tests/hccl/strategies/random_costs.hpp"
#include "tests/support/refusal.hpp"

/// Searches of strategies as a user asks for them: on a platform, with what they are compared with, and saved.
namespace hcclsim::study {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

StrategySearchSpec search_of(StrategySearchMode mode, const std::string& model, std::uint32_t batch) {
  StrategySearchSpec spec;
  spec.run.platform.file = HCCLSIM_PLATFORM_DIR "/atlas800t-a2.xml";
  spec.run.model.name = model;
  spec.run.model.batch = batch;
  spec.run.parallel.batch_given = true;
  spec.mode = mode;
  return spec;
}

StrategySearchResult searched(const StrategySearchSpec& spec) {
  return search_strategies(spec, [](const std::string&) {});
}

constexpr StrategySearchMode found_alone[] = {StrategySearchMode::recursive_programming,
                                              StrategySearchMode::dynamic_programming, StrategySearchMode::exact};

// What is saved and loaded again is the same plan, task by task, and the same step, to the last digit.
TEST(StrategySearch, SavedStrategiesFixThePlan) {
  for (const StrategySearchMode mode : found_alone) {
    SCOPED_TRACE(name_of(mode));
    StrategySearchSpec spec = search_of(mode, "mlp:512,1024,2048,64", 2);
    spec.save = testing::TempDir() + "/saved.json";
    const StrategySearchResult result = searched(spec);
    ASSERT_FALSE(result.compared.empty());
    EXPECT_EQ(result.compared.front().name, name_of(mode));

    RunSpec loaded = spec.run;
    loaded.parallel.operators.strategy = spec.save;
    const Seconds step = on_experiment(loaded, [](Experiment& experiment) {
      return experiment.simulate(experiment.training).step_times[experiment.training.simulation.rank];
    });
    EXPECT_EQ(step, result.compared.front().step);

    if (mode == StrategySearchMode::exact) continue;  // which needs the platform to find the same again
    RunSpec found = spec.run;
    models::ModelOptions sizes = found.model;
    sizes.batch *= 8;
    found.parallel.operators.found = find_strategies(models::make_model(sizes), {.mode = mode}, 8, 1).strategies;
    EXPECT_TRUE(differences(plan_of_run(found), plan_of_run(loaded)).empty());
  }
}

TEST(StrategySearch, ComparesWithWhatIsUsual) {
  StrategySearchSpec spec = search_of(StrategySearchMode::recursive_programming, "gpt2-small", 1);
  spec.run.model.layers = 1;
  spec.run.model.sequence = 32;
  spec.run.model.hidden = 64;
  spec.run.model.heads = 4;
  spec.run.model.vocabulary = 128;
  const StrategySearchResult result = searched(spec);
  EXPECT_EQ(result.devices, 8U);
  EXPECT_EQ(result.samples, 8U);
  std::vector<std::string> names;
  for (const StrategyTrial& trial : result.compared) {
    names.push_back(trial.name);
    EXPECT_TRUE(trial.refused.empty()) << trial.refused;
    EXPECT_GT(trial.step, 0);
    EXPECT_GT(trial.hbm_peak, 0U);
    EXPECT_TRUE(trial.fits);
  }
  EXPECT_THAT(names,
              UnorderedElementsAre("recursive_programming", "data parallel", "model parallel 2", "model parallel 4"));
}

/// Networks of the zoo: what MindSpore searches of them, and what follows.
class SearchedNetworks : public testing::TestWithParam<models::ModelInfo> {};

TEST_P(SearchedNetworks, KeepSomeOperatorsAndEliminateOthers) {
  const models::ModelInfo& info = GetParam();
  models::ModelOptions sizes{.name = std::string(info.name), .batch = 8};
  if (info.kind == models::NetworkKind::tokens || info.kind == models::NetworkKind::decoder) sizes.layers = 2;
  const models::Graph network = models::make_model(sizes);
  const FoundMap result = find_strategies(network, {}, 8, 1);
  ASSERT_TRUE(result.found.kept.has_value() && result.found.eliminated.has_value());
  EXPECT_GT(*result.found.kept, 0U);
  EXPECT_GT(*result.found.eliminated, 0U);
  EXPECT_GT(result.found.cost, 0);
  EXPECT_GT(result.found.dynamic_cost, 0);
  EXPECT_EQ(result.found.strategies.size(), result.strategies.size());
}

INSTANTIATE_TEST_SUITE_P(Zoo, SearchedNetworks, testing::ValuesIn(models::model_list()), [](const auto& info) {
  std::string name(info.param.name);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
});

// By the costs of dynamic programming.
TEST(StrategySearch, TheBestChoiceJudgesTheOthers) {
  const auto found = [](StrategySearchMode mode) {
    models::ModelOptions sizes{.name = "mlp:256,512,512,64", .batch = 8};
    return find_strategies(models::make_model(sizes), {.mode = mode}, 8, 1).found;
  };
  const FoundStrategies best = found(StrategySearchMode::exact);
  ASSERT_TRUE(best.bound.has_value());
  EXPECT_EQ(*best.bound, best.cost);  // proved
  EXPECT_EQ(found(StrategySearchMode::dynamic_programming).dynamic_cost, best.cost);
  EXPECT_GE(found(StrategySearchMode::recursive_programming).dynamic_cost, best.cost);
}

/// What is known of the seconds of a network's strategies.
struct JudgedSeconds {
  double best = 0;  ///< of the exact search
  double bound = 0;
  double least = 0;            ///< of all choices, by brute force; 0: not looked for
  double most_memory = 0;      ///< of the choice of the exact search with half of the memory that it had
  std::vector<double> others;  ///< of what the other searches find
};

JudgedSeconds judged(const StrategySearchSpec& spec, const models::ModelOptions& sizes, bool all) {
  RunSpec run = spec.run;
  run.hbm_check = device::HbmCheck::warn;
  return on_experiment(run, [&](Experiment& experiment) {
    const models::Graph network = models::make_model(sizes);
    hccl::SearchOptions options = spec.options;
    options.devices = experiment.npus;
    const hccl::CostGraph costs = costs_in_seconds(network, options, {}, run, experiment).costs;
    const auto seconds = [](const hccl::SearchCost& cost) { return cost.computation; };
    const hccl::ExactResult best = exact_search(costs, seconds, {});
    JudgedSeconds result;
    result.best = best.cost;
    result.bound = best.bound;
    hccl::SearchOptions as_they_are;  // an objective that is the computation
    as_they_are.beta = 0;
    if (all) result.least = *test::least_of_all(costs, as_they_are, std::numeric_limits<double>::infinity());
    const double memory = best.memory / 2;
    try {
      result.most_memory = exact_search(costs, seconds, {.memory = memory}).memory / memory;
    } catch (const Error&) {
      result.most_memory = 0;  // there is none
    }
    for (const StrategySearchMode mode :
         {StrategySearchMode::recursive_programming, StrategySearchMode::dynamic_programming}) {
      const auto parts = hccl::given_parts(
          network, find_strategies(network, {.mode = mode}, experiment.npus, 1).strategies, experiment.npus);
      hccl::Choice choice(costs.nodes.size(), 0);
      bool known = true;
      for (std::size_t id = 0; id < parts.size(); ++id) {
        if (!parts[id].has_value()) continue;
        const auto& candidates = costs.nodes[id].candidates;
        const auto at = std::ranges::find(candidates, *parts[id]);
        known = known && at != candidates.end();
        choice[id] = known ? static_cast<std::uint32_t>(at - candidates.begin()) : 0;
      }
      if (known) result.others.push_back(cost_of(costs, choice).computation);
    }
    return result;
  });
}

// By the sum of seconds on a platform: it is what brute force finds, and nobody finds less.
TEST(StrategySearch, NobodyBeatsTheLeastSumOfSeconds) {
  StrategySearchSpec spec = search_of(StrategySearchMode::exact, "mlp:256,1024,64", 2);
  spec.run.npus = 4;
  const JudgedSeconds small = judged(spec, {.name = "mlp:256,1024,64", .batch = 8}, true);
  EXPECT_GT(small.best, 0);
  EXPECT_NEAR(small.best, small.least, 1e-15);
  EXPECT_EQ(small.best, small.bound);
  EXPECT_LE(small.most_memory, 1);
  for (const char* const model : {"mlp:256,1024,64", "mlp:4096,8192,8192,4096", "lenet", "tinygpt"}) {
    spec.run.model.name = model;
    const JudgedSeconds judge = judged(spec, {.name = model, .batch = 8}, false);
    EXPECT_EQ(judge.others.size(), 2U) << model;
    for (const double other : judge.others) EXPECT_GE(other, judge.best * (1 - 1e-12)) << model;
  }
}

/// A choice of candidates, simulated.
struct SimulatedChoice {
  Seconds step = std::numeric_limits<Seconds>::infinity();  ///< infinite: it cannot be
  Seconds computed = 0;  ///< what its candidates compute, by which choices are bounded
};

/// Choices of candidates of a run without strategies: all, or some of them at random.
std::vector<SimulatedChoice> simulated_choices(const StrategySearchSpec& spec, std::size_t most) {
  RunSpec run = spec.run;
  run.hbm_check = device::HbmCheck::warn;
  models::ModelOptions sizes = run.model;
  sizes.batch *= *run.npus;
  const models::Graph network = models::make_model(sizes);
  const Rank devices = *run.npus;
  hccl::SearchOptions options = spec.options;
  options.devices = devices;
  const StrategySeconds seconds = on_experiment(
      run, [&](Experiment& experiment) { return costs_in_seconds(network, options, {}, run, experiment); });
  std::size_t count = 1;
  for (const std::vector<Seconds>& of_operator : seconds.computed) count *= of_operator.size();
  std::mt19937_64 random(count);
  std::vector<SimulatedChoice> choices;
  for (std::size_t i = 0; i < std::min(count, most); ++i) {
    std::size_t number = count <= most ? i : random() % count;
    hccl::Choice choice;
    for (const std::vector<Seconds>& of_operator : seconds.computed) {
      choice.push_back(static_cast<std::uint32_t>(number % of_operator.size()));
      number /= of_operator.size();
    }
    RunSpec with = run;
    with.parallel.operators.found = strategies_of_choice(network, seconds.costs, choice,
                                                         std::vector<bool>(network.operators.size(), false), devices);
    SimulatedChoice simulated;
    // Operators that share a parameter may have come to agree on another choice.
    const auto parts = hccl::given_parts(network, with.parallel.operators.found, devices);
    for (std::size_t op = 0; op < parts.size(); ++op) {
      const auto& candidates = seconds.costs.nodes[op].candidates;
      const auto at = parts[op].has_value() ? std::ranges::find(candidates, *parts[op]) : candidates.begin();
      if (at != candidates.end()) simulated.computed += seconds.computed[op][at - candidates.begin()];
    }
    try {
      simulated.step = on_experiment(with, [](Experiment& experiment) { return simulated_step(experiment); });
    } catch (const Error&) {
      continue;
    }
    choices.push_back(simulated);
  }
  return choices;
}

// Whatever strategies a user can give: none has a shorter step, and the bound is below all.
TEST(StrategySearch, ExactIsTheLeastSimulatedStepOfAllChoices) {
  for (const char* const model : {"mlp:256,256,4096", "mlp:64,4096"}) {
    StrategySearchSpec spec = search_of(StrategySearchMode::exact, model, 8);
    spec.run.npus = 2;
    const StrategySearchResult result = searched(spec);
    const std::vector<SimulatedChoice> choices = simulated_choices(spec, 1000);
    ASSERT_GE(choices.size(), 8U);
    Seconds least = std::numeric_limits<Seconds>::infinity();
    for (const SimulatedChoice& choice : choices) least = std::min(least, choice.step);
    EXPECT_EQ(result.found.cost, least) << model;
    EXPECT_EQ(*result.found.bound, least) << model;
    EXPECT_EQ(result.compared.front().step, least) << model;
    for (const StrategyTrial& trial : result.compared) EXPECT_GE(trial.step, least) << model << " " << trial.name;
  }
}

// What choices are bounded by is below every step, with shared parameters, norms, convolutions and attention.
TEST(StrategySearch, WhatCandidatesComputeIsBelowTheStep) {
  for (const char* const model : {"lenet", "tinygpt", "smallres"}) {
    StrategySearchSpec spec = search_of(StrategySearchMode::exact, model, 2);
    spec.run.npus = 4;
    const std::vector<SimulatedChoice> choices = simulated_choices(spec, 12);
    ASSERT_GT(choices.size(), 5U) << model;
    for (const SimulatedChoice& choice : choices) {
      EXPECT_GT(choice.computed, 0) << model;
      EXPECT_LE(choice.computed, choice.step * (1 + 1e-12)) << model;
    }
  }
}

// Where not all choices can be simulated, it is still as good as all that it is compared with, and says what is proved.
TEST(StrategySearch, ExactHasABoundWhereThereAreManyChoices) {
  StrategySearchSpec spec = search_of(StrategySearchMode::exact, "mlp:512,1024,2048,64", 2);
  spec.run.npus = 4;
  const StrategySearchResult result = searched(spec);
  EXPECT_GT(result.found.candidates, 50U);
  EXPECT_LE(*result.found.bound, result.found.cost);
  EXPECT_GT(*result.found.bound, 0);
  for (const StrategyTrial& trial : result.compared) {
    const bool runs = trial.refused.empty() && trial.fits;
    EXPECT_TRUE(!runs || trial.step >= result.compared.front().step) << trial.name;
  }
}

TEST(StrategySearch, Refuses) {
  EXPECT_THAT(test::refusal(
                  "search",
                  [] { static_cast<void>(searched(search_of(StrategySearchMode::sharding_propagation, "lenet", 1))); }),
              HasSubstr("give --given FILE"));
  StrategySearchSpec spec = search_of(StrategySearchMode::exact, "lenet", 1);
  spec.save = "cuts.toml";
  EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(searched(spec)); }), HasSubstr("name it .json"));
}

}  // namespace
}  // namespace hcclsim::study
