#include "hccl/training/waits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "tests/support/training/programs.hpp"

/// Waits of a plan and of spans that are both written by hand, in seconds.
namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t compute = 0;
constexpr std::uint32_t reductions = 1;
constexpr std::uint32_t updates = 2;
constexpr std::uint32_t operators = 3;
constexpr std::uint32_t host = 4;

PlannedCollective collective(std::string name) {
  return {0, {.ranks = 2, .elements = 1}, {std::make_shared<Schedule>()}, std::move(name)};
}

/// Two kernels of the backward pass, the second of which waits for a sum of an operator, beside which the gradient of
/// the first is reduced and updated; then one that waits for the host; then a gather.
Plan two_ranks() {
  auto program = std::make_shared<models::Program>();
  program->kernels = {test::timed_kernel("b", models::Phase::backward, 1),
                      test::timed_kernel("a", models::Phase::backward, 1),
                      test::timed_kernel("table", models::Phase::backward, 1),
                      test::timed_kernel("momentum", models::Phase::update, 1)};
  program->micro_batch_kernels = 3;
  Plan plan;
  Role& role = plan.roles.emplace_back();
  role.program = program;
  role.streams = {StreamKind::compute, StreamKind::communication, StreamKind::update, StreamKind::communication,
                  StreamKind::host};
  const Purpose backward{.phase = StepPhase::backward};
  role.tasks = {
      {.work = KernelBlock{0, 1}, .purpose = backward},
      {.work = CollectiveTask{0}, .purpose = {.phase = StepPhase::reduction}, .stream = reductions, .after = {0}},
      {.work = CollectiveTask{1}, .purpose = backward, .stream = operators, .after = {0}},
      {.work = KernelBlock{1, 1}, .purpose = backward, .after = {2}},
      {.work = HostWork{2}, .purpose = backward, .stream = host, .after = {3}},
      {.work = KernelBlock{2, 1}, .purpose = backward, .after = {4}},
      {.work = KernelBlock{3, 1}, .purpose = {.phase = StepPhase::update}, .stream = updates, .after = {1}},
      {.work = CollectiveTask{2}, .purpose = {.phase = StepPhase::gather}, .stream = reductions, .after = {6}}};
  plan.role_of.assign(2, 0);
  plan.families = {{{world_communicator(2)}}};
  plan.collectives = {collective("allreduce1"), collective("sum"), collective("gather")};
  return plan;
}

struct TimedTask {
  std::uint32_t task;
  Seconds start;
  Seconds end;
};

using Told = std::vector<std::tuple<std::uint32_t, Seconds, Seconds>>;

/// Number of the task, from, to; of each stream and of the end.
std::vector<Told> waits_with(const std::vector<TimedTask>& times) {
  const Plan plan = two_ranks();
  const std::vector<PlanTask>& tasks = plan.roles.front().tasks;
  sim::Trace trace;
  trace.select({0}, 2, false);
  for (const TimedTask& time : times) {
    const PlanTask& task = tasks[time.task];
    const sim::SpanKind kind = std::holds_alternative<KernelBlock>(task.work) ? sim::SpanKind::kernel
                               : task.stream == host                          ? sim::SpanKind::host
                                                                              : sim::SpanKind::collective;
    trace.add({.stream = task.stream, .kind = kind, .start = time.start, .end = time.end, .id = {time.task, 0, 0}});
  }
  std::vector<Told> told;
  for (const std::vector<Wait>& waits : waits_of(plan, trace, 0, 0, MessageStarts(plan, trace))) {
    Told& one = told.emplace_back();
    for (const Wait& wait : waits) {
      one.emplace_back(static_cast<std::uint32_t>(wait.task - tasks.data()), wait.time.start, wait.time.end);
    }
  }
  return told;
}

std::vector<Told> usual_waits() {
  return waits_with({{0, 0, 1}, {1, 1, 6}, {2, 1, 4}, {3, 4, 5}, {4, 5, 7}, {5, 7, 8}, {6, 6, 7}, {7, 8.5, 10}});
}

TEST(Waits, AreForWhatTheNextKernelWaitsFor) {
  // The reduction is under way all the time, but the second kernel waits for the sum, and the third one for the host.
  EXPECT_THAT(usual_waits()[compute], ElementsAre(std::tuple(2U, 1, 4), std::tuple(4U, 5, 7)));
}

TEST(Waits, OfTheUpdateAreForItsReduction) {
  EXPECT_THAT(usual_waits()[updates], ElementsAre(std::tuple(1U, 1, 6)));
  EXPECT_THAT(usual_waits()[reductions], IsEmpty());  // without kernels
}

TEST(Waits, OfTheEndAreBehindTheLastKernel) {
  // The gather begins half a second after that: the host was late.
  EXPECT_THAT(usual_waits().back(), ElementsAre(std::tuple(7U, 8.5, 10)));
  EXPECT_THAT(waits_with({{0, 0, 1}, {7, 1, 3}, {6, 3, 4}}).back(), IsEmpty());
}

TEST(Waits, LeadBackThroughWhatHeldUpTheTask) {
  // The gather follows the update, or without one the reduction, which is in its stream.
  EXPECT_THAT(waits_with({{0, 0, 1}, {1, 1, 6}, {6, 6, 7}, {7, 7, 8}}).back(), ElementsAre(std::tuple(7U, 7, 8)));
  EXPECT_THAT(waits_with({{0, 0, 1}, {1, 1, 6}, {7, 7, 8}}).back(),
              ElementsAre(std::tuple(7U, 7, 8), std::tuple(1U, 1, 6)));
}

}  // namespace
}  // namespace hcclsim::hccl
