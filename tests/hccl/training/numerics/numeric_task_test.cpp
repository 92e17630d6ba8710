#include "hccl/training/numerics/numeric_task.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/parallel/data_parallel.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training.hpp"

/// The Plan's tasks as work with real numbers.
namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;

std::vector<std::string> written(const Plan& plan) {
  std::vector<std::string> lines;
  for (const NumericTask& task : numeric_tasks(plan)) {
    constexpr std::array kinds{"gather", "step", "forward", "backward", "message", "reduce", "check", "update"};
    lines.push_back(fmt::format("{} {}", kinds.at(static_cast<std::size_t>(task.kind)), fmt::join(task.items, ",")));
  }
  return lines;
}

Plan plan_of_mlp(const test::TrainingSetup& setup) {
  return test::plan_of(models::make_model({.name = "mlp:4,3,2", .batch = 2}), setup);
}

TEST(NumericTask, KeepTheOrderOfThePlan) {
  EXPECT_THAT(written(plan_of_mlp({.npus = 2, .last_indices = {0}})),
              ElementsAre("step ", "reduce 0,1", "update 0,1,2,3"));
}

TEST(NumericTask, ADynamicLossScaleChecks) {
  test::TrainingSetup setup{.npus = 2, .last_indices = {0}};
  setup.options.loss_scale = device::LossScaler::parse("dynamic");
  setup.options.clip_norm = 1;
  EXPECT_THAT(written(plan_of_mlp(setup)), ElementsAre("step ", "reduce 0,1", "check ", "update 0,1,2,3"));
}

TEST(NumericTask, AClipAloneChecksNothing) {
  test::TrainingSetup setup{.npus = 2};
  setup.options.clip_norm = 1;
  EXPECT_THAT(written(plan_of_mlp(setup)), ElementsAre("step ", "reduce 0", "update 0,1,2,3"));
}

TEST(NumericTask, RefusesWhatHasNoRealNumbersYet) {
  Plan plan = plan_of_mlp({.npus = 2});
  plan.roles.front().tasks.push_back({.work = SendTask{}, .purpose = {.phase = StepPhase::forward}});
  EXPECT_THROW(static_cast<void>(numeric_tasks(plan)), Error);
  plan = plan_of_mlp({.npus = 2});
  plan.roles.push_back(plan.roles.front());
  EXPECT_THROW(static_cast<void>(numeric_tasks(plan)), Error);
}

}  // namespace
}  // namespace hcclsim::hccl
