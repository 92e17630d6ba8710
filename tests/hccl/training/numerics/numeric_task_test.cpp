#include "hccl/training/numerics/numeric_task.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "hccl/training/numerics/trained_stage.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/parallel_training.hpp"
#include "tests/support/training/training.hpp"

/// The Plan's tasks as work with real numbers.
namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;

constexpr std::array kind_names{"gather", "step",   "forward", "backward", "message",
                                "reduce", "mirror", "check",   "update",   "broadcast"};

std::string text_of(const NumericTask& task) {
  return fmt::format("{} {}", kind_names.at(static_cast<std::size_t>(task.kind)), fmt::join(task.items, ","));
}

std::vector<std::string> written(const Plan& plan) {
  std::vector<std::string> lines;
  for (const NumericTask& task : numeric_tasks(plan)) lines.push_back(text_of(task));
  return lines;
}

/// With roles and, of passes and messages, the micro-batch; a message that a gradient takes is marked; "." where a role
/// needs no more of a micro-batch.
std::string written_in_roles(const Plan& plan) {
  std::string text;
  for (const NumericTask& task : numeric_tasks(plan)) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{}", task.role);
    if (task.kind == NumericTask::Kind::message) {
      text += fmt::format(">{}{} {}", task.to, task.returns ? " gradient" : "", task.micro_batch);
    } else if (task.computes()) {
      text += fmt::format(" {} {}", kind_names.at(static_cast<std::size_t>(task.kind)), task.micro_batch);
    } else {
      text += " " + text_of(task);
    }
    if (task.ends) text += ".";
  }
  return text;
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

test::ParallelSetup two_stages() {
  test::ParallelSetup setup;
  setup.model = {.name = "mlp:4,3,2", .batch = 2, .fc_bias = false};
  setup.shape = {.stages = 2, .micro_batches = 2};
  return setup;
}

std::string written_in_roles(const test::ParallelSetup& setup) {
  return written_in_roles(test::plan_of(setup, test::stages_of(setup, models::make_model(setup.model))));
}

TEST(NumericTask, FollowMessagesFromStageToStage) {
  EXPECT_EQ(written_in_roles(two_stages()),
            "0 forward 0; 0>1 0; 0 forward 1; 0>1 1; "
            "1 forward 0; 1 backward 0; 1>0 gradient 0.; 1 forward 1; 1 backward 1; 1>0 gradient 1.; 1 reduce 0; "
            "0 backward 0.; 0 backward 1.; 0 reduce 0; 0 update 0,1; 1 update 0");
}

TEST(NumericTask, GatherBeforeThePassThatReads) {
  test::ParallelSetup setup = two_stages();
  setup.shape = {.stages = 1, .micro_batches = 2};
  setup.replicas = 2;
  setup.optimizer_parallel = "zero1";
  EXPECT_EQ(written_in_roles(setup), "0 gather 0; 0 step 0.; 0 step 1.; 0 reduce 0; 0 update 0,1,2");
  setup.optimizer_parallel = "zero2";
  EXPECT_EQ(written_in_roles(setup), "0 gather 0; 0 step 0.; 0 reduce 0; 0 step 1.; 0 reduce 0; 0 update 0,1,2");
  setup.optimizer_parallel = "zero3";
  EXPECT_EQ(written_in_roles(setup),
            "0 gather 0; 0 forward 0; 0 gather 0; 0 backward 0.; 0 reduce 0; "
            "0 gather 0; 0 forward 1; 0 gather 0; 0 backward 1.; 0 reduce 0; 0 update 0,1,2");
  // The sums of parts are summed over the replicas that have the same ones.
  setup.replicas = 4;
  setup.optimizer_parallel = "zero2:shard=2";
  EXPECT_EQ(written_in_roles(setup),
            "0 gather 0; 0 step 0.; 0 reduce 0; 0 step 1.; 0 reduce 0; 0 mirror 0; 0 update 0,1,2");
}

TEST(NumericTask, RefusesMessagesToNobody) {
  Plan plan = plan_of_mlp({.npus = 2});
  plan.roles.front().tasks.push_back({.work = SendTask{}, .purpose = {.phase = StepPhase::forward}});
  EXPECT_THROW(static_cast<void>(numeric_tasks(plan)), Error);
}

/// Ranks of a stage that have the same parameters and reduce their gradients apart, as two networks.
TEST(NumericTask, RefusesNetworksThatTrainApart) {
  const auto refused = [](const Plan& plan) {
    const models::Graph network = models::make_model({.name = "mlp:4,3,2", .batch = 2});
    EXPECT_THROW(StageSetup(plan, 0, network, replicated(network, 2), numeric_tasks(plan), {}, {}), Error);
  };
  Plan plan = plan_of_mlp({.npus = 2});
  for (GroupFamily& family : plan.families) family.groups = {{"first", {0}}, {"second", {1}}};
  for (PlannedCollective& collective : plan.collectives) {
    collective.schedules.assign(2, collective.schedules.front());
  }
  refused(plan);
}

TEST(NumericTask, BroadcastsFollowTheUpdates) {
  test::ParallelSetup setup = two_stages();
  setup.shape = {.stages = 1, .micro_batches = 1};
  setup.replicas = 2;
  setup.optimizer_parallel = "dealt";
  const std::vector<NumericTask> tasks =
      numeric_tasks(test::plan_of(setup, test::stages_of(setup, models::make_model(setup.model))));
  ASSERT_EQ(tasks.size(), 4U);
  EXPECT_EQ(tasks[1].kind, NumericTask::Kind::reduce);
  EXPECT_EQ(tasks[2].kind, NumericTask::Kind::update);
  EXPECT_EQ(tasks[3].kind, NumericTask::Kind::broadcast);
  EXPECT_EQ(tasks[3].items, (std::vector<std::uint32_t>{0, 1}));
}

}  // namespace
}  // namespace hcclsim::hccl
