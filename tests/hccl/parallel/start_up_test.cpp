#include "hccl/parallel/start_up.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "hccl/parallel/plan/plan_walk.hpp"
#include "tests/support/training/pipelines.hpp"

/// What is sent once before the first step.
namespace hcclsim::hccl {
namespace {

models::Kernel copy(models::OperatorKind kind, std::int64_t offset, std::uint32_t tag, std::uint64_t elements) {
  models::Kernel kernel;
  kernel.kind = models::KernelClass::communication;
  kernel.communication = std::make_shared<const models::CommunicationWork>(models::CommunicationWork{
      .kind = kind, .peer = {.offset = offset, .tag = tag}, .dtype = DataType::fp16, .elements = elements});
  return kernel;
}

// R1.28: one broadcast in fp32 of all elements from the first rank of the replicas.
TEST(StartUp, BroadcastsAllWeightsOfAStage) {
  const Plan plan = start_up_plan({{.broadcast_elements = 10}, {.broadcast_elements = 7}}, 4, test::empty_schedule);
  ASSERT_EQ(plan.collectives.size(), 2U);
  for (std::uint32_t stage = 0; stage < 2; ++stage) {
    const PlannedCollective& broadcast = plan.collectives[stage];
    EXPECT_EQ(broadcast.operation.collective, Collective::broadcast);
    EXPECT_EQ(broadcast.operation.root, 0U);
    EXPECT_EQ(broadcast.operation.type, DataType::fp32);
    EXPECT_EQ(broadcast.operation.elements, stage == 0 ? 10U : 7U);
    EXPECT_THAT(plan.families[broadcast.family].groups.front().ranks, testing::ElementsAre(2 * stage, 2 * stage + 1));
    ASSERT_EQ(plan.roles[stage].tasks.size(), 1U);
  }
}

TEST(StartUp, OneReplicaHasNobodyToSendTo) {
  const Plan plan = start_up_plan({{.broadcast_elements = 10}}, 1, test::empty_schedule);
  EXPECT_THAT(plan.collectives, testing::IsEmpty());
  EXPECT_THAT(plan.roles.front().tasks, testing::IsEmpty());
}

// P3.18: the owner sends a shared weight to each stage that uses it, once; bytes are those of the weight.
TEST(StartUp, CopiesSharedWeightsToEveryUser) {
  using enum models::OperatorKind;
  const std::vector<StartUp> stages{{.copies = {copy(send, 4, 1, 100), copy(send, 2, 0, 100)}},
                                    {.copies = {copy(receive, -2, 0, 100)}},
                                    {.copies = {copy(receive, -4, 1, 100)}}};
  const Plan plan = start_up_plan(stages, 6, test::empty_schedule);
  ASSERT_EQ(plan.messages.size(), 2U);
  for (const PlannedMessage& message : plan.messages) EXPECT_EQ(message.bytes, 200U);
  ASSERT_EQ(plan.roles[0].tasks.size(), 2U);
  EXPECT_EQ(std::get<SendTask>(plan.roles[0].tasks[0].work).offset, 2);
  EXPECT_EQ(std::get<SendTask>(plan.roles[0].tasks[1].work).offset, 4);
  EXPECT_EQ(std::get<ReceiveTask>(plan.roles[1].tasks.front().work).offset, -2);
  EXPECT_EQ(std::get<ReceiveTask>(plan.roles[2].tasks.front().work).tag, 1U);
}

}  // namespace
}  // namespace hcclsim::hccl
