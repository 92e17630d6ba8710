#include "hccl/parallel/step_plan.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "models/graph_builder.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "tests/support/training/programs.hpp"
#include "tests/support/training/steps.hpp"

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;

/// Plans are looked at, not simulated: an empty schedule will do.
std::shared_ptr<const Schedule> no_schedule(const Communicator& group, const Operation& operation) {
  Schedule schedule;
  static_cast<Operation&>(schedule) = operation;
  schedule.ranks = static_cast<Rank>(group.ranks.size());
  return std::make_shared<const Schedule>(std::move(schedule));
}

/// "compute 0: forward [a b]" of every task, with what it waits for.
std::vector<std::string> written(const Plan& plan) {
  const Role& role = plan.roles.front();
  std::vector<std::string> lines;
  for (std::uint32_t t = 0; t < role.tasks.size(); ++t) {
    const PlanTask& task = role.tasks[t];
    std::string what = plan.name(role, {t, 0});
    if (const auto* block = std::get_if<KernelBlock>(&task.work); block != nullptr && block->count > 1) {
      what += " .. " + plan.name(role, {t, block->count - 1});
    }
    std::string line = fmt::format("{} {}: {} {}", name_of(role.streams[task.stream]), task.ordinal,
                                   name_of(task.purpose.phase), what);
    for (const std::uint32_t before : task.after) line += fmt::format(" after {}", before);
    lines.push_back(std::move(line));
  }
  return lines;
}

/// Three gradients, each with a kernel; a check and an update of each, the factor of a clip.
std::shared_ptr<models::Program> program() {
  using models::Phase;
  auto program = std::make_shared<models::Program>();
  program->kernels = {test::timed_kernel("f0", Phase::forward, 1), test::timed_kernel("f1", Phase::forward, 1),
                      test::timed_kernel("b0", Phase::backward, 1), test::timed_kernel("b1", Phase::backward, 1),
                      test::timed_kernel("b2", Phase::backward, 1)};
  program->micro_batch_kernels = 5;
  program->overflow_flag = true;
  for (std::uint32_t g = 0; g < 3; ++g) {
    program->gradients.push_back({.name = fmt::format("g{}", g), .elements = 10, .kernel = g + 2});
    program->kernels.push_back(test::timed_kernel(fmt::format("c{}", g), Phase::check, 1, g));
  }
  program->kernels.push_back(test::timed_kernel("clip", Phase::check, 1));
  for (std::uint32_t g = 0; g < 3; ++g) {
    program->kernels.push_back(test::timed_kernel(fmt::format("u{}", g), Phase::update, 1, g));
  }
  return program;
}

TEST(DataParallelPlan, InSeries) {
  const Plan plan = test::data_parallel_plan(program(), {.npus = 4}, {{0, 0}, {1, 2}}, no_schedule);
  EXPECT_THAT(
      written(plan),
      ElementsAre("compute 0: forward f0 .. f1", "compute 2: backward b0 .. b2",
                  "communication 5: reduction allreduce1 after 1", "communication 6: reduction allreduce2 after 1",
                  "compute 7: check c0 .. c2 after 3", "communication 10: check overflow_flag after 4",
                  "compute 11: check clip", "compute 12: update u0 .. u2 after 3 after 5"));
  EXPECT_THAT(plan.role_of, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(plan.collectives[1].operation.elements, 20U);
  EXPECT_EQ(plan.collectives[1].segment, 1U);
  EXPECT_EQ(plan.collectives[2].segment, Purpose::none);
}

TEST(DataParallelPlan, BesideTheBackwardPass) {
  const Plan plan =
      test::data_parallel_plan(program(), {.npus = 4, .hcom_parallel = true}, {{0, 0}, {1, 2}}, no_schedule);
  EXPECT_THAT(written(plan),
              ElementsAre("compute 0: forward f0 .. f1", "compute 2: backward b0",
                          "communication 3: reduction allreduce1 after 1", "compute 4: backward b1 .. b2",
                          "communication 6: reduction allreduce2 after 3", "update 7: check c0 after 2",
                          "update 8: check c1 .. c2 after 4", "communication 10: check overflow_flag after 6",
                          "update 11: check clip", "update 12: update u0 after 2 after 7",
                          "update 13: update u1 .. u2 after 4 after 7"));
}

// MindSpore's graph: allreduces beside the backward pass, checks and updates behind it in the compute stream.
TEST(DataParallelPlan, UpdatesInTheComputeStream) {
  const Plan plan = test::data_parallel_plan(program(), test::overlapped({}, 4), {{0, 0}, {1, 2}}, no_schedule);
  EXPECT_THAT(written(plan),
              ElementsAre("compute 0: forward f0 .. f1", "compute 2: backward b0",
                          "communication 3: reduction allreduce1 after 1", "compute 4: backward b1 .. b2",
                          "communication 6: reduction allreduce2 after 3", "compute 7: check c0 after 2",
                          "compute 8: check c1 .. c2 after 4", "communication 10: check overflow_flag after 6",
                          "compute 11: check clip", "compute 12: update u0 after 2 after 7",
                          "compute 13: update u1 .. u2 after 4 after 7"));
}

// Ranks 0 and 2 reduce in one segment, 1 and 3 in two: a role each, with a family of its own.
TEST(DataParallelPlan, GroupsThatSplitOtherwiseAreRolesOfTheirOwn) {
  const StageProgram stage{
      .program = program(),
      .reductions = {{.segment = {0, 2}}, {.segment = {0, 0}, .copies = 1}, {.segment = {1, 2}, .copies = 1}},
      .families = {{{0, 2}}, {{1, 3}}}};
  const StepSpec step{.npus = 4, .groups = {{"even", {0, 2}}, {"odd", {1, 3}}}};
  const Plan plan = make_plan({&stage, 1}, step, no_schedule);
  EXPECT_THAT(plan.role_of, ElementsAre(0, 1, 0, 1));
  ASSERT_EQ(plan.roles.size(), 2U);
  EXPECT_EQ(plan.roles[0].segments, (std::vector<Segment>{{0, 2}}));
  EXPECT_EQ(plan.roles[1].segments, (std::vector<Segment>{{0, 0}, {1, 2}}));
  EXPECT_EQ(plan.families[0].groups.front().name, "even");
  EXPECT_EQ(plan.families[1].groups.front().name, "odd");
  // Each has its own reduction of the overflow flag.
  std::vector<std::pair<std::uint32_t, Rank>> families;
  for (const PlannedCollective& collective : plan.collectives) {
    families.emplace_back(collective.family, collective.operation.ranks);
  }
  EXPECT_THAT(families, ElementsAre(std::pair(0U, 2U), std::pair(0U, 2U), std::pair(1U, 2U), std::pair(1U, 2U),
                                    std::pair(1U, 2U)));
}

/// Of a program that communicates in families of groups; its gradients are reduced over those of the last one.
Plan communicating_plan(const std::shared_ptr<const models::Program>& shared, const std::vector<Segment>& segments,
                        std::vector<DeviceGroups> families, Rank npus) {
  const StageProgram stage = test::replicas(shared, segments, std::move(families));
  return make_plan({&stage, 1}, {.npus = npus}, no_schedule);
}

/// A layer whose rows are shared by two ranks: its output is a sum over them.
models::Program row_parallel() {
  models::GraphBuilder builder("test", {4, 8});
  const models::Value part = builder.linear("rows", 0, 6, false);
  const models::Value sum = builder.all_reduce("sum", part, {.family = 0, .ranks = 2});
  const models::Value logits = builder.linear("fc", builder.relu("relu", sum), 3, false);
  models::Program program =
      models::lower(std::move(builder).finish(logits), {.precision = models::precision_of(models::Amp::o0)});
  models::add_updates(program, {.precision = models::precision_of(models::Amp::o0)});
  return program;
}

TEST(DataParallelPlan, CommunicationOfTheProgramWaitsForItsInputAndIsWaitedFor) {
  const auto shared = std::make_shared<const models::Program>(row_parallel());
  const Plan plan = communicating_plan(shared, {{0, 1}}, {{{0, 1}, {2, 3}}, {{0, 1, 2, 3}}}, 4);
  EXPECT_THAT(
      written(plan),
      ElementsAre("compute 0: forward rows:forward", "communication 1: forward sum:forward after 0",
                  "compute 2: forward relu:forward .. loss:forward after 1",
                  "compute 5: backward fc:weight_gradient .. fc:data_gradient+mask",
                  "communication 7: backward sum:gradient after 3", "compute 8: backward rows:weight_gradient after 4",
                  "communication 9: reduction allreduce1 after 5",
                  "compute 10: update fc.weight:momentum .. rows.weight:momentum after 6"));
  ASSERT_EQ(plan.families.size(), 2U);
  EXPECT_EQ(plan.collectives.front().family, 0U);
  EXPECT_EQ(plan.collectives.front().schedules.size(), 2U);  // one for each pair
  EXPECT_EQ(plan.collectives.front().operation.elements, 24U);
  EXPECT_EQ(plan.collectives.back().family, 1U);
}

TEST(DataParallelPlan, CommunicationWaitsForTheLastPartOfItsInput) {
  // The gradient of attention's input is written in three parts.
  models::GraphBuilder builder = models::GraphBuilder::of_tokens("test", 2, 4);
  models::Value x = builder.token_embedding("tokens", 0, 16, 8);
  x = builder.all_reduce("sum", builder.linear("qkv", x, 24, false), {.family = 0, .ranks = 2});
  x = builder.attention("attention", x, {.heads = 2});
  const models::Value logits = builder.linear("fc", x, 3, false);
  models::Program program = models::lower(std::move(builder).finish(logits), {});
  models::add_updates(program, {});
  const auto shared = std::make_shared<const models::Program>(std::move(program));
  const auto last = static_cast<std::uint32_t>(shared->gradients.size() - 1);
  const Plan plan = communicating_plan(shared, {{0, last}}, {{{0, 1}}}, 2);
  const Role& role = plan.roles.front();
  for (std::uint32_t t = 0; t < role.tasks.size(); ++t) {
    if (plan.name(role, {t, 0}) != "sum:gradient") continue;
    const std::uint32_t before = role.tasks[t].after.at(0);
    EXPECT_EQ(plan.name(role, {before, std::get<KernelBlock>(role.tasks[before].work).count - 1}),
              "attention:key_gradient");
    return;
  }
  ADD_FAILURE() << "no dual of the sum";
}

TEST(DataParallelPlan, WhatIsThereBeforeWaitsForNobody) {
  models::GraphBuilder builder("test", {4, 8});
  const models::Value all = builder.all_gather("gather", 0, {.family = 0, .ranks = 2}, 1);
  const models::Value own = builder.linear("own", 0, 3, false);
  const models::Value sum = builder.add("sum", builder.linear("all", all, 3, false), own);
  models::Program program =
      models::lower(std::move(builder).finish(sum), {.precision = models::precision_of(models::Amp::o0)});
  models::add_updates(program, {.precision = models::precision_of(models::Amp::o0)});
  const auto shared = std::make_shared<const models::Program>(std::move(program));
  const Plan plan = communicating_plan(shared, {{0, 1}}, {{{0, 1}}}, 2);
  const std::vector<std::string> lines = written(plan);
  EXPECT_EQ(lines[0], "communication 0: forward gather:forward");
  EXPECT_EQ(lines[1], "compute 1: forward own:forward");
  EXPECT_THAT(lines[2],
              testing::AllOf(testing::StartsWith("compute 2: forward all:forward"), testing::EndsWith("after 0")));
}

TEST(DataParallelPlan, RefusesAFamilyThatIsNone) {
  const auto shared = std::make_shared<const models::Program>(row_parallel());
  EXPECT_THROW(static_cast<void>(communicating_plan(shared, {{0, 1}}, {}, 2)), Error);
}

TEST(DataParallelPlan, CommunicationOfTheProgramNamesItsKernel) {
  const auto shared = std::make_shared<const models::Program>(row_parallel());
  const Plan plan = communicating_plan(shared, {{0, 1}}, {{{0, 1}}}, 2);
  const Role& role = plan.roles.front();
  std::uint32_t found = 0;
  for (std::uint32_t t = 0; t < role.tasks.size(); ++t) {
    if (role.tasks[t].kernel == Purpose::none) continue;
    EXPECT_EQ(plan.name(role, {t, 0}), shared->kernels[role.tasks[t].kernel].name);
    ++found;
  }
  EXPECT_EQ(found, std::ranges::count(shared->kernels, models::KernelClass::communication, &models::Kernel::kind));
}

}  // namespace
}  // namespace hcclsim::hccl
