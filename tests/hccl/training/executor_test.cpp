#include "hccl/training/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/algorithm/direct.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/training/step_view.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/programs.hpp"
#include "tests/support/training/steps.hpp"
#include "tests/support/units.hpp"

/// Plans that are more than data parallelism, carried out: programs that communicate, roles that send and receive.
namespace hcclsim::hccl {
namespace {

using models::Phase;
using test::timed_kernel;
using test::us;

/// Runs a plan once on a platform without task costs, whose links have 1 us and 10 GB/s.
std::vector<StepView> views_of(const Plan& plan, Rank npus) {
  return test::in_child([&] {
    test::TestPlatform platform;
    platform.npus_per_server = npus;
    platform.properties = test::no_task_costs();
    test::Rig rig(test::write_platform(platform), sim::NetworkKind::fluid);
    std::vector<Rank> all;
    for (Rank rank = 0; rank < npus; ++rank) all.push_back(rank);
    rig.trace.select(all, npus, false);
    PlanExecutor executor(plan, rig.runtime, rig.trace, {}, 2);
    executor.start();
    rig.runtime.run();
    std::vector<StepView> views;
    for (const Rank rank : all) views.push_back(StepView::of(plan, rig.trace, rank));
    return views;
  });
}

models::CommunicationWork sum_over_pair(models::TensorId input, models::TensorId output) {
  return {.kind = models::OperatorKind::all_reduce,
          .group = {.family = 0, .ranks = 2},
          .elements = 5120,
          .input = input,
          .output = output};
}

/// f0 makes tensor 0, a sum over two ranks makes tensor 1 of it, f1 does something else, f2 reads the sum.
std::shared_ptr<models::Program> communicating() {
  auto program = std::make_shared<models::Program>();
  program->kernels = {timed_kernel("f0", Phase::forward, 3 * us),  timed_kernel("sum", Phase::forward, 0),
                      timed_kernel("f1", Phase::forward, 2 * us),  timed_kernel("f2", Phase::forward, 4 * us),
                      timed_kernel("b0", Phase::backward, 5 * us), timed_kernel("u0", Phase::update, 1 * us, 0)};
  program->kernels[1].kind = models::KernelClass::communication;
  program->kernels[1].communication = std::make_shared<const models::CommunicationWork>(sum_over_pair(0, 1));
  program->micro_batch_kernels = 5;
  program->tensors = {{100, 0, 1, 0}, {100, 1, 3, 1}};
  program->reads = {{0, 1}, {1, 3}};
  program->gradients = {{.name = "g0", .elements = 5120, .kernel = 4}};
  return program;
}

/// It sums over these groups, and reduces its gradient over all ranks.
Plan plan_of(Rank npus, const DeviceGroups& groups) {
  DeviceGroups all(1, std::vector<Rank>(npus));
  std::iota(all.front().begin(), all.front().end(), Rank{0});
  const StageProgram stage = test::replicas(communicating(), {{0, 0}}, {groups, all});
  return make_plan({&stage, 1}, {.npus = npus}, [](const Communicator&, const Operation& operation) {
    return std::make_shared<const Schedule>(ring_allreduce(operation, true));
  });
}

// An allreduce of 20,480 bytes by a ring of two: two rounds of 1 us + 1.024 us.
constexpr double sum_us = 4.048;

TEST(PlanExecutor, AProgramThatCommunicatesWaitsForItsSumOnly) {
  // Two groups of the family, in which ranks 0 and 2, 1 and 3 meet.
  const Plan plan = plan_of(4, {{0, 2}, {1, 3}});
  for (const StepView& view : views_of(plan, 4)) {
    // f0 until 3, the sum until 7.048; f1 from 3 to 5 beside it; f2 from 7.048, b0 from 11.048 to 16.048.
    EXPECT_NEAR(view.fp_end / us, 3 + sum_us + 4, 1e-9);
    EXPECT_NEAR(view.bp_end / us, 3 + sum_us + 9, 1e-9);
    // The gradients of four ranks: six rounds of a quarter.
    EXPECT_NEAR(view.segments.at(0).end / us, 3 + sum_us + 9 + 6 * (1 + 0.512), 1e-9);
    EXPECT_NEAR(view.iteration_end / us, 3 + sum_us + 9 + 6 * (1 + 0.512) + 1, 1e-9);
    EXPECT_NEAR(view.exposed / us, sum_us - 2 + 6 * (1 + 0.512), 1e-9);
  }
}

TEST(PlanExecutor, MemoryFollowsTheTensors) {
  const Plan plan = plan_of(2, {{0, 1}});
  const StepView view = views_of(plan, 2).front();
  // 100 bytes from f0 on, 200 while the sum is made beside f1, 100 until f2 has read it, none in b0.
  std::vector<Bytes> bytes;
  for (const MemoryPoint& point : view.activations) bytes.push_back(point.bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(100, 200, 100, 0));
}

/// A step of one rank: kernels, a transfer before or behind them, an update.
std::shared_ptr<models::Program> stage(Seconds forward, Seconds backward) {
  auto program = std::make_shared<models::Program>();
  program->kernels = {timed_kernel("forward", Phase::forward, forward),
                      timed_kernel("backward", Phase::backward, backward)};
  program->micro_batch_kernels = 2;
  return program;
}

TEST(PlanExecutor, RolesSendAndReceive) {
  const auto message =
      std::make_shared<const Schedule>(direct_send_recv({.ranks = 2,
                                                         .collective = Collective::send_recv,
                                                         .in_place = false,
                                                         .counts = BlockCounts::of_pairs(2, {0, 2560, 0, 0})}));
  Plan plan;
  plan.role_of = {0, 0, 1, 1};  // ranks 0 and 1 are the first stage, 2 and 3 the second
  plan.messages = {{message, "activation"}, {message, "gradient"}};
  const std::vector<StreamKind> streams{StreamKind::compute, StreamKind::communication};
  Role first{stage(10 * us, 20 * us), streams, {}, {}};
  first.tasks = {{.work = KernelBlock{0, 1}, .purpose = {.phase = StepPhase::forward}},
                 {.work = SendTask{0, 2, 1}, .purpose = {.phase = StepPhase::forward}, .stream = 1, .after = {0}},
                 {.work = ReceiveTask{1, 2, 1}, .purpose = {.phase = StepPhase::backward}, .stream = 1},
                 {.work = KernelBlock{1, 1}, .purpose = {.phase = StepPhase::backward}, .after = {2}}};
  Role second{stage(30 * us, 40 * us), streams, {}, {}};
  second.tasks = {{.work = ReceiveTask{0, -2, 1}, .purpose = {.phase = StepPhase::forward}, .stream = 1},
                  {.work = KernelBlock{0, 1}, .purpose = {.phase = StepPhase::forward}, .after = {0}},
                  {.work = KernelBlock{1, 1}, .purpose = {.phase = StepPhase::backward}},
                  {.work = SendTask{1, -2, 1}, .purpose = {.phase = StepPhase::backward}, .stream = 1, .after = {2}}};
  plan.roles = {first, second};
  const std::vector<StepView> views = views_of(plan, 4);
  // A message of 10,240 bytes takes 2.024 us. Of the first stage's forward pass of the second iteration:
  constexpr double sent = 2.024;
  for (const Rank rank : {0U, 1U}) {
    EXPECT_NEAR(views[rank].fp_end / us, 10, 1e-9);
    EXPECT_NEAR(views[rank].bp_end / us, 10 + sent + 30 + 40 + sent + 20, 1e-9);
    EXPECT_NEAR(views[rank].communicating / us, 2 * sent, 1e-9) << "a receive that waits is not under way";
  }
  for (const Rank rank : {2U, 3U}) EXPECT_NEAR((views[rank].bp_end - views[rank].fp_end) / us, 40, 1e-9);
}

TEST(PlanExecutor, RefusesARankWithoutAGroup) {
  const auto run = [](const DeviceGroups& groups) { return views_of(plan_of(4, groups), 4); };
  EXPECT_THROW(run({{0, 1}}), Error);
  EXPECT_THROW(run({{0, 1}, {1, 2}}), Error);
  EXPECT_THROW(run({{0, 1}, {2, 4}}), Error);
}

}  // namespace
}  // namespace hcclsim::hccl
