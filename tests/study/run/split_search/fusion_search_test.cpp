#include "study/run/split_search/fusion_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "study/run/run.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

RunSpec pipeline() {
  RunSpec run;
  run.platform.file = find_platform("atlas800t-a2");
  run.model = {.name = "gpt2-small", .batch = 4, .sequence = 128, .layers = 4, .hidden = 256, .heads = 4};
  run.step.hcom_parallel = true;
  run.step.shape.stages = 2;
  run.parallel.micro_batches = 2;
  run.parallel.batch_given = true;
  run.parallel.optimizer.kind = hccl::OptimizerParallelKind::zero1;
  return run;
}

/// What is looked at of a search.
struct Found {
  std::vector<std::string> rules;
  std::vector<Seconds> steps;
  std::vector<std::uint32_t> collectives;
  Seconds given = 0;
  std::optional<Seconds> bound;
};

Found search(const RunSpec& run) {
  return run_in_child([&] {
    sim::Cluster cluster(run.platform.file);
    const FusionSearch found = search_fusion(run, cluster, [](const std::string& /*what*/) {});
    Found result{.rules = {}, .steps = {}, .collectives = {}, .given = found.given.step, .bound = found.bound};
    for (const FusionTrial& trial : found.trials) {
      result.rules.push_back(option_text(trial.rules));
      result.steps.push_back(trial.step);
      result.collectives.push_back(trial.collectives);
    }
    return result;
  });
}

TEST(FusionSearch, EveryTrialIsTheStepOfARun) {
  const Found found = search(pipeline());
  ASSERT_GT(found.steps.size(), 10);
  for (const std::size_t i : {std::size_t{0}, found.steps.size() / 2, found.steps.size() - 1}) {
    RunSpec run = pipeline();
    run.parallel.fusion = hccl::parse_fusion_rules(found.rules[i]);
    EXPECT_EQ(simulate(run).step_time, found.steps[i]) << found.rules[i];
    EXPECT_GE(found.steps[i], found.steps.front() * (1 - 1e-4)) << found.rules[i];
  }
  // Steps that count as equal to the shortest come by collectives, all others by time.
  const Seconds shortest = *std::min_element(found.steps.begin(), found.steps.end());
  const Seconds equal = shortest * (1 + FusionSearch::equal_steps);
  for (std::size_t i = 1; i < found.steps.size(); ++i) {
    if (found.steps[i] <= equal) {
      EXPECT_LE(found.steps[i - 1], equal);
      EXPECT_LE(found.collectives[i - 1], found.collectives[i]);
    } else {
      EXPECT_LE(found.steps[i - 1], std::max(found.steps[i], equal));
    }
  }
  EXPECT_EQ(simulate(pipeline()).step_time, found.given);
  EXPECT_LE(found.steps.front(), found.given * (1 + 1e-4));
  ASSERT_TRUE(found.bound.has_value());
  EXPECT_LT(*found.bound, found.steps.front());
}

TEST(FusionSearch, StepsThatJitterHaveNoBound) {
  RunSpec run = pipeline();
  run.skew.jitter = 0.01;
  EXPECT_FALSE(search(run).bound.has_value());
}

TEST(FusionSearch, NothingToFuse) {
  RunSpec run = pipeline();
  run.npus = 2;
  EXPECT_NE(test::refusal("option", [&] { static_cast<void>(search(run)); }), "");
}

}  // namespace
}  // namespace hcclsim::study
