#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hccl/training/training.hpp"
#include "study/plan_search/plan_search.hpp"
#include "study/run/run.hpp"
#include "tests/study/run/kinds_of_plans.hpp"
#include "tests/support/simulation.hpp"

/// What a search of plans rejects them by: bounds below every simulated step.
namespace hcclsim::study {
namespace {

TEST(StepBound, IsBelowTheSimulatedStepOfEveryKindOfPlan) {
  const std::vector<std::string> platforms{test::write_platform({.servers = 8, .npus_per_server = 1}),
                                           test::write_platform({.servers = 4, .npus_per_server = 2}), "atlas800t-a2"};
  std::vector<double> shares;
  for (const PlanOfAKind& kind : plans_of_all_kinds()) {
    for (const std::string& platform : platforms) {
      RunSpec spec = kind.spec;
      spec.platform.file = platform;
      spec.network = sim::NetworkKind::fluid;
      spec.iterations = 1;
      const auto [bound, step] = on_experiment(
          spec, [](Experiment& experiment) { return std::pair(step_bound(experiment), simulated_step(experiment)); });
      EXPECT_GT(bound, 0) << kind.name << " on " << platform;
      EXPECT_LE(bound, step * (1 + 1e-12)) << kind.name << " on " << platform;
      shares.push_back(bound / step);
      spec.iterations = 3;
      const auto [mean_bound, mean] = on_experiment(
          spec, [](Experiment& experiment) { return std::pair(step_bound(experiment), simulated_step(experiment)); });
      EXPECT_LE(mean_bound, mean * (1 + 1e-12)) << kind.name << " on " << platform;
    }
  }
  std::ranges::nth_element(shares, shares.begin() + shares.size() / 2);
  EXPECT_GT(shares[shares.size() / 2], 0.8);
}

}  // namespace
}  // namespace hcclsim::study
