#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
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
  std::size_t beyond_computing = 0;
  for (const PlanOfAKind& kind : plans_of_all_kinds()) {
    for (const std::string& platform : platforms) {
      RunSpec spec = kind.spec;
      spec.platform.file = platform;
      spec.network = sim::NetworkKind::fluid;
      spec.iterations = 1;
      const std::vector<double> found = on_experiment(spec, [](Experiment& experiment) -> std::vector<double> {
        return {computing_time(experiment), step_bound(experiment), simulated_step(experiment)};
      });
      const std::string what = fmt::format("{} on {}", kind.name, platform);
      EXPECT_GT(found[0], 0) << what;
      EXPECT_LE(found[0], found[2] * (1 + 1e-12)) << what;
      EXPECT_LE(found[1], found[2] * (1 + 1e-12)) << what;
      if (found[1] > found[0] * 1.01) ++beyond_computing;
    }
  }
  EXPECT_GT(beyond_computing, 30U);
}

}  // namespace
}  // namespace hcclsim::study
