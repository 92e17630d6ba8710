#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "device/skew.hpp"
#include "hccl/training/training.hpp"
#include "sim/faults/fault.hpp"
#include "study/compare/plans/plan_search.hpp"
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
      spec.simulation.network = sim::NetworkKind::fluid;
      spec.simulation.iterations = 1;
      const auto [bound, step] = on_experiment(
          spec, [](Experiment& experiment) { return std::pair(step_bound(experiment), simulated_step(experiment)); });
      EXPECT_GT(bound, 0) << kind.name << " on " << platform;
      EXPECT_LE(bound, step * (1 + 1e-12)) << kind.name << " on " << platform;
      shares.push_back(bound / step);
      spec.simulation.iterations = 3;
      const auto [mean_bound, mean] = on_experiment(
          spec, [](Experiment& experiment) { return std::pair(step_bound(experiment), simulated_step(experiment)); });
      EXPECT_LE(mean_bound, mean * (1 + 1e-12)) << kind.name << " on " << platform;
    }
  }
  std::ranges::nth_element(shares, shares.begin() + shares.size() / 2);
  EXPECT_GT(shares[shares.size() / 2], 0.8);
}

// Speeds, jitter and faults make kernels and transfers shorter than they are by themselves.
TEST(StepBound, IsBelowTheStepOfNpusAndLinksThatAreFaster) {
  const std::string platform = test::write_platform({.servers = 4, .npus_per_server = 2});
  const std::vector<std::pair<std::string, std::function<void(RunSpec&)>>> changes{
      {"speeds", [](RunSpec& spec) { spec.skew.speeds = {3, 2, 2.5, 2, 3, 2, 2.5, 2}; }},
      {"jitter", [](RunSpec& spec) { spec.skew.jitter = 0.16; }},
      {"exponential", [](RunSpec& spec) { spec.skew = {.jitter = 0.99, .shape = device::JitterShape::exponential}; }},
      {"fault of NPUs", [](RunSpec& spec) { spec.faults = sim::parse_faults("npu[*].speed=3"); }},
      {"faults of links",
       [](RunSpec& spec) { spec.faults = sim::parse_faults("link[*].bandwidth=300%,link[*].latency=1ns"); }}};
  for (const PlanOfAKind& kind : plans_of_all_kinds()) {
    for (const auto& [name, change] : changes) {
      SCOPED_TRACE(kind.name + ", " + name);
      RunSpec spec = kind.spec;
      spec.platform.file = platform;
      spec.simulation.network = sim::NetworkKind::fluid;
      change(spec);
      for (const std::uint32_t iterations : {1U, 3U}) {
        spec.simulation.iterations = iterations;
        const auto [bound, step] = on_experiment(
            spec, [](Experiment& experiment) { return std::pair(step_bound(experiment), simulated_step(experiment)); });
        EXPECT_GE(bound, 0);
        EXPECT_LE(bound, step * (1 + 1e-12)) << iterations;
      }
    }
  }
}

}  // namespace
}  // namespace hcclsim::study
