#include "study/run/trial_search.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "study/compare/tune/tune.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "study/run/run.hpp"
#include "tests/support/case_name.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

struct Advised {
  Seconds step = 0;
  bool try_best = false;
  std::vector<Trial> trials;
};

Advised advice_of(const RunSpec& spec) {
  return on_experiment(spec, [](Experiment& experiment) {
    const RunResult result = simulate_run(experiment, {.compared = true});
    return Advised{result.step_time(), result.advice->try_best, result.trials};
  });
}

struct Tuned {
  Cuts cuts;
  ConfirmedSplit best;
};

Tuned tuned(const RunSpec& run) {
  TuneSpec spec;
  spec.run = run;
  spec.run.platform.file = find_platform(run.platform.file);
  return test::in_child([&] {
    sim::Cluster cluster(spec.run.platform.file);
    const TuneResult result = tune(spec, cluster);
    return Tuned{result.chosen.cuts, result.best};
  });
}

struct Case {
  std::string platform = "atlas800-9000";
  std::string model = "resnet50";
  std::optional<std::vector<double>> by_size{};
};

RunSpec spec_of(const Case& tested) {
  RunSpec spec;
  spec.platform.file = tested.platform;
  spec.model.name = tested.model;
  spec.step.hcom_parallel = true;
  spec.split_by_size = tested.by_size;
  return spec;
}

class AdviceAndTune : public testing::TestWithParam<Case> {};

TEST_P(AdviceAndTune, AgreeOnTheBestSplit) {
  const RunSpec spec = spec_of(GetParam());
  const Advised run = advice_of(spec);
  const Tuned best = tuned(spec);
  constexpr double alike = 1e-3;  // what tune compares besides may be a little better
  ASSERT_FALSE(run.trials.empty());
  const Seconds trial = std::min(run.trials.front().step_time, run.step);
  EXPECT_LE(best.best.step, trial * (1 + clearly));
  EXPECT_NEAR(best.best.step, trial, alike * trial);
  EXPECT_EQ(run.try_best, run.trials.front().step_time <= run.step * (1 - worthwhile));
  for (const Trial& other : run.trials) EXPECT_GE(other.step_time, run.trials.front().step_time * (1 - clearly));
  // What is advised is what the run then takes.
  RunSpec with_trial = spec;
  with_trial.split_by_size.reset();
  with_trial.split_by_idx = run.trials.front().by_idx;
  EXPECT_DOUBLE_EQ(simulate(with_trial).step_time, run.trials.front().step_time);
  // With the split of tune nothing is left to be advised.
  with_trial.split_by_idx = best.cuts;
  const Advised again = advice_of(with_trial);
  EXPECT_DOUBLE_EQ(again.step, best.best.step);
  EXPECT_FALSE(again.try_best);
}

INSTANTIATE_TEST_SUITE_P(Platforms, AdviceAndTune,
                         testing::Values(Case{}, Case{.model = "mobilenet_v2"}, Case{.model = "resnet18"},
                                         Case{.platform = "atlas800-9000-x4"},
                                         Case{.platform = "atlas800-9000-shared-pcie", .model = "vgg16"},
                                         Case{.platform = "atlas800t-a2", .model = "alexnet"},
                                         Case{.platform = "atlas800t-a2-x2", .by_size = {{30, 70}}},
                                         Case{.platform = "atlas900-a3", .by_size = {{99.9, 0.1}}},
                                         Case{.platform = "atlas900-a3-superpod", .model = "lenet"}),
                         [](const auto& tested) {
                           return test::case_name(fmt::format("{}_{}", tested.param.platform, tested.param.model));
                         });

TEST(TrialSearch, SlowRanksAreJudgedByTheSlowest) {
  RunSpec spec = spec_of({});
  spec.skew.speeds = {1, 1, 1, 0.9, 1, 1, 1, 1};
  const Advised run = advice_of(spec);
  EXPECT_FALSE(run.try_best);  // rank 0 waits for rank 3
  spec.simulation.rank = 3;
  const Advised slowest = advice_of(spec);
  EXPECT_TRUE(slowest.try_best);
  ASSERT_EQ(slowest.trials.size(), run.trials.size());
  for (std::size_t i = 0; i < run.trials.size(); ++i) EXPECT_EQ(slowest.trials[i].by_idx, run.trials[i].by_idx) << i;
}

}  // namespace
}  // namespace hcclsim::study
