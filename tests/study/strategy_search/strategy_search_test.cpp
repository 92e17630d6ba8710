#include "study/strategy_search/strategy_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "models/zoo/zoo.hpp"
#include "study/experiment/plans.hpp"
#include "study/run/run.hpp"
#include "study/strategy_search/find_strategies.hpp"
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
      return experiment.simulate(experiment.training).step_times[experiment.training.rank];
    });
    EXPECT_EQ(step, result.compared.front().step);

    RunSpec found = spec.run;
    models::ModelOptions sizes = found.model;
    sizes.batch *= 8;
    found.parallel.operators.found = find_strategies(models::make_model(sizes), spec, 8, 1).strategies;
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
  if (info.kind == models::NetworkKind::tokens) sizes.layers = 2;
  const models::Graph network = models::make_model(sizes);
  StrategySearchSpec spec;
  spec.mode = StrategySearchMode::recursive_programming;
  const FoundMap result = find_strategies(network, spec, 8, 1);
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

TEST(StrategySearch, TheBestChoiceJudgesTheOthers) {
  const auto cost = [](StrategySearchMode mode) {
    return searched([&] {
             StrategySearchSpec spec = search_of(mode, "mlp:256,512,512,64", 1);
             spec.simulates = false;
             return spec;
           }())
        .found;
  };
  const FoundStrategies best = cost(StrategySearchMode::exact);
  ASSERT_TRUE(best.bound.has_value());
  EXPECT_EQ(*best.bound, best.cost);  // proved
  EXPECT_EQ(cost(StrategySearchMode::dynamic_programming).dynamic_cost, best.cost);
  EXPECT_GE(cost(StrategySearchMode::recursive_programming).dynamic_cost, best.cost);
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
