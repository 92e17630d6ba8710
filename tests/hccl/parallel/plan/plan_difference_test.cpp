#include "hccl/parallel/plan/plan_difference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "hccl/parallel/plan/plan_file.hpp"
#include "hccl/parallel/plan/plan_text.hpp"
#include "tests/support/training/pipelines.hpp"

namespace hcclsim::hccl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

Plan compared_plan() {
  const PipelineShape shape{2, 3, 1, PipelineSchedule::one_f_one_b};
  return make_plan(test::timed_stages(shape, 4, 1, 2), test::overlapped(shape, 8), test::empty_schedule);
}

/// The differences that a change makes, one behind the other.
std::string told(const std::function<void(Plan&)>& change) {
  const Plan plan = compared_plan();
  Plan changed = compared_plan();
  change(changed);
  std::string text;
  for (const PlanDifference& one : differences(plan, changed)) {
    text += one.whose + ' ' + one.stream + ": " + one.first + " / " + one.second + '\n';
  }
  return text;
}

template <typename Work>
PlanTask& first_of(Plan& plan, std::size_t role) {
  for (PlanTask& task : plan.roles[role].tasks) {
    if (std::holds_alternative<Work>(task.work)) return task;
  }
  throw std::logic_error("no such task");
}

TEST(PlanDifference, APlanIsEqualToItself) {
  EXPECT_THAT(differences(compared_plan(), compared_plan()), IsEmpty());
  const Plan plan = compared_plan();
  EXPECT_THAT(differences(plan, plan_of_json("plan.json", plan_json(plan))), IsEmpty());
}

TEST(PlanDifference, EverythingIsCompared) {
  EXPECT_THAT(told([](Plan& plan) { plan.families[0].groups[0].name = "other"; }),
              HasSubstr("the Plan groups of family 0: stage0_replicas0 (ranks 0-3) / other (ranks 0-3)"));
  EXPECT_THAT(told([](Plan& plan) { plan.families[0].groups[0].ranks = {0, 1, 3, 2}; }), HasSubstr("(ranks 0-1,3,2)"));
  EXPECT_THAT(told([](Plan& plan) { plan.collectives[0].operation.type = DataType::bf16; }), HasSubstr("bf16, over"));
  EXPECT_THAT(told([](Plan& plan) { first_of<CollectiveTask>(plan, 0).purpose.segment = 9; }),
              AllOf(HasSubstr(" / "), HasSubstr("[segment 9]")));
  EXPECT_THAT(told([](Plan& plan) {
                auto schedule = std::make_shared<Schedule>(*plan.collectives[0].schedules.front());
                schedule->algorithm = "mesh";
                plan.collectives[0].schedules.assign(plan.collectives[0].schedules.size(), schedule);
              }),
              HasSubstr("[algorithm mesh]"));
  EXPECT_THAT(told([](Plan& plan) {
                auto slow = std::make_shared<models::Program>(*plan.roles[1].program);
                for (models::Kernel& kernel : slow->kernels) kernel.duration *= 10;
                plan.roles[1].program = slow;
              }),
              AllOf(HasSubstr("stage 1 compute: "), HasSubstr("[time ")));
  EXPECT_THAT(told([](Plan& plan) { ++std::get<SendTask>(first_of<SendTask>(plan, 0).work).tag; }),
              HasSubstr("stage 0 messages: "));
  EXPECT_THAT(told([](Plan& plan) { plan.messages[0].bytes += 4; }), HasSubstr(": send 20 bytes"));
  EXPECT_THAT(told([](Plan& plan) { first_of<KernelBlock>(plan, 0).steps.end = 2; }),
              HasSubstr("in the first 2 steps"));
  EXPECT_THAT(told([](Plan& plan) { plan.roles[0].tasks.pop_back(); }), HasSubstr(" / \n"));
  EXPECT_THAT(told([](Plan& plan) {
                plan.roles.push_back(plan.roles[0]);
                plan.role_of[3] = 2;
              }),
              HasSubstr("stage 0 ranks: ranks 0-3 / ranks 0-2"));
}

TEST(PlanDifference, NumbersOfRolesSayNothing) {
  EXPECT_EQ(told([](Plan& plan) {
              std::swap(plan.roles[0], plan.roles[1]);
              for (std::uint32_t& role : plan.role_of) role = 1 - role;
            }),
            "");
}

TEST(PlanText, LargeGroupsAreShortened) {
  Plan plan = compared_plan();
  std::vector<Rank> strided;
  plan.role_of.assign(128, 0);
  for (Rank rank = 0; rank < 128; rank += 8) strided.push_back(rank);
  plan.families[0].groups = {{"strided", strided}};
  PlanWords words(plan);
  std::size_t task = 0;
  while (!std::holds_alternative<CollectiveTask>(plan.roles[0].tasks[task].work)) ++task;
  EXPECT_THAT(words.line(0, task), HasSubstr(" in group strided (ranks 0,8,16,... (16))"));
  EXPECT_THAT(words.groups(0, 0), HasSubstr("ranks 0,8,16,24,32"));
}

}  // namespace
}  // namespace hcclsim::hccl
