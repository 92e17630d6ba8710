#include "hccl/training/step_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/support/training/programs.hpp"

/// Figures of a plan and of spans that are both written by hand; dates are whole seconds, or binary fractions of them.
namespace hcclsim::hccl {
namespace {

using models::Phase;
using test::timed_kernel;
using testing::ElementsAre;

// Tasks of the plan.
constexpr std::uint32_t forward_task = 0;
constexpr std::uint32_t backward_task = 1;
constexpr std::uint32_t first_allreduce = 2;
constexpr std::uint32_t second_allreduce = 3;
constexpr std::uint32_t check_task = 4;
constexpr std::uint32_t flag_task = 5;
constexpr std::uint32_t update_task = 6;

PlannedCollective summed(std::uint64_t elements, std::string name, std::uint32_t segment) {
  auto schedule = std::make_shared<Schedule>();
  schedule->algorithm = "ring";
  return {0, {.ranks = 8, .elements = elements}, {schedule}, std::move(name), segment};
}

/// Three gradients, complete after the first (0 and 1) and the second (2) kernel of the backward pass, in two segments
/// on eight ranks; a check of their overflow and an update.
Plan eight_ranks() {
  auto program = std::make_shared<models::Program>();
  program->kernels = {timed_kernel("a:forward", Phase::forward, 2), timed_kernel("b:weight", Phase::backward, 2),
                      timed_kernel("a:weight", Phase::backward, 2), timed_kernel("check", Phase::check, 0.25),
                      timed_kernel("momentum", Phase::update, 0.5)};
  program->micro_batch_kernels = 3;
  program->gradients = {{.name = "b.bias", .parameter = 2, .elements = 100, .kernel = 1},
                        {.name = "b.weight", .parameter = 1, .elements = 1400, .kernel = 1},
                        {.name = "a", .parameter = 0, .elements = 500, .kernel = 2}};
  Plan plan;
  Role& role = plan.roles.emplace_back();
  role.program = program;
  role.streams = {StreamKind::compute, StreamKind::communication};
  role.segments = {{0, 1}, {2, 2}};
  role.tasks = {
      {.work = KernelBlock{0, 1}, .purpose = {.phase = StepPhase::forward}},
      {.work = KernelBlock{1, 2}, .purpose = {.phase = StepPhase::backward}},
      {.work = CollectiveTask{0}, .purpose = {.phase = StepPhase::reduction, .segment = 0}, .stream = 1, .after = {1}},
      {.work = CollectiveTask{1}, .purpose = {.phase = StepPhase::reduction, .segment = 1}, .stream = 1, .after = {1}},
      {.work = KernelBlock{3, 1}, .purpose = {.phase = StepPhase::check}, .after = {3}},
      {.work = CollectiveTask{2}, .purpose = {.phase = StepPhase::check}, .stream = 1, .after = {4}},
      {.work = KernelBlock{4, 1}, .purpose = {.phase = StepPhase::update}, .after = {5}}};
  plan.role_of.assign(8, 0);
  plan.families = {{{world_communicator(8)}}};
  plan.collectives = {summed(1500, "allreduce1", 0), summed(500, "allreduce2", 1),
                      summed(1, std::string(overflow_flag_name), Purpose::none)};
  return plan;
}

sim::Span kernel_span(sim::TaskId id, Seconds start, Seconds end) {
  return {.kind = sim::SpanKind::kernel, .start = start, .end = end, .id = id};
}

sim::Span collective_span(sim::TaskId id, Seconds start, Seconds end) {
  return {.stream = 1, .kind = sim::SpanKind::collective, .start = start, .end = end, .id = id};
}

/// Two iterations of rank 0 that take 10 s: forward 0–2, backward 2–4 and 4–6, AR1 6–8, AR2 8–9, update 9.5–10.
sim::Trace two_iterations() {
  sim::Trace trace;
  trace.select({0}, 8, true);
  for (std::int32_t iteration = 0; iteration < 2; ++iteration) {
    const Seconds zero = iteration * 10;
    const auto id = [&](std::uint32_t task, std::uint32_t part = 0) { return sim::TaskId{task, part, iteration}; };
    trace.add(kernel_span(id(forward_task), zero, zero + 2));
    trace.add(kernel_span(id(backward_task, 0), zero + 2, zero + 4));
    trace.add(kernel_span(id(backward_task, 1), zero + 4, zero + 6));
    trace.add(collective_span(id(first_allreduce), zero + 6, zero + 8));
    // A task inside of it, and work of the host, which are no part of the figures.
    trace.add(
        {.stream = 1, .kind = sim::SpanKind::copy, .start = zero + 6, .end = zero + 7, .id = id(first_allreduce)});
    trace.add({.stream = 2, .kind = sim::SpanKind::host, .start = zero, .end = zero + 20, .id = id(first_allreduce)});
    trace.add(collective_span(id(second_allreduce), zero + 8, zero + 9));
    trace.add(kernel_span(id(update_task), zero + 9.5, zero + 10));
  }
  return trace;
}

/// The same with a check from 9 to 9.25 s and the allreduce of the overflow flag from 9.25 to 9.5 s of the second one.
sim::Trace flagged_iterations() {
  sim::Trace trace = two_iterations();
  trace.add(kernel_span({check_task, 0, 1}, 19, 19.25));
  trace.add(collective_span({flag_task, 0, 1}, 19.25, 19.5));
  return trace;
}

TEST(PurposeOf, IsThatOfTheTaskThatTheSpanNames) {
  const Plan plan = eight_ranks();
  const auto purpose = [&](std::uint32_t task) { return purpose_of(plan, {.rank = 3, .id = {task, 0, 0}}); };
  EXPECT_EQ(purpose(backward_task).task, &plan.roles.front().tasks[backward_task]);
  EXPECT_EQ(purpose(backward_task).phase, StepPhase::backward);
  EXPECT_EQ(purpose(backward_task).stream, StreamKind::compute);
  EXPECT_EQ(purpose(backward_task).segment, Purpose::none);
  EXPECT_EQ(purpose(second_allreduce).phase, StepPhase::reduction);
  EXPECT_EQ(purpose(second_allreduce).stream, StreamKind::communication);
  EXPECT_EQ(purpose(second_allreduce).segment, 1U);
}

TEST(StepView, PassesOfMicroBatchesTakeTurns) {
  // Forward 0–1, backward 1–3 (with a pause), forward 3–5, backward 5–8.
  Plan plan = eight_ranks();
  Role& role = plan.roles.front();
  role.segments.clear();
  role.tasks = {role.tasks[0], role.tasks[1], role.tasks[0], role.tasks[1]};
  role.tasks[2].purpose.micro_batch = role.tasks[3].purpose.micro_batch = 1;
  sim::Trace trace;
  trace.select({0}, 8, true);
  trace.add(kernel_span({0, 0, 0}, 0, 1));
  trace.add(kernel_span({1, 0, 0}, 1, 1.5));
  trace.add(kernel_span({1, 1, 0}, 2, 3));
  trace.add(kernel_span({2, 0, 0}, 3, 5));
  trace.add(kernel_span({3, 0, 0}, 5, 7));
  trace.add(kernel_span({3, 1, 0}, 7, 8));
  const StepView view = StepView::of(plan, trace, 0);
  EXPECT_EQ(view.phases.forward, 3);
  EXPECT_EQ(view.phases.backward, 5);
  EXPECT_EQ(view.fp_end, 5);    // dates: of the last forward pass
  EXPECT_EQ(view.bp_start, 1);  // … and of the first backward pass
}

TEST(PurposeOf, SpansOfNoTaskHaveNone) {
  const Plan plan = eight_ranks();
  EXPECT_EQ(purpose_of(plan, {.rank = 0}).task, nullptr);
  EXPECT_EQ(purpose_of(plan, {.rank = 0, .id = {7, 0, 0}}).task, nullptr);
  EXPECT_EQ(purpose_of(plan, {.rank = 8, .id = {forward_task, 0, 0}}).task, nullptr);
}

TEST(IterationPoints, OfATrace) {
  const StepView view = StepView::of(eight_ranks(), two_iterations(), 0);
  ASSERT_EQ(view.iterations.size(), 2);
  const IterationPoints& second = view.iterations[1];
  EXPECT_EQ(second.fp_start, 10);
  EXPECT_EQ(second.fp_end, 12);
  EXPECT_EQ(second.bp_start, 12);
  EXPECT_EQ(second.bp_end, 16);
  ASSERT_EQ(second.allreduces.size(), 2);
  EXPECT_EQ(second.allreduces[1].start, 18);
  EXPECT_EQ(second.allreduces[1].end, 19);
  EXPECT_FALSE(second.overflow_flag.has_value());
  EXPECT_EQ(second.iteration_end, 20);
}

TEST(IterationPoints, TheOverflowFlagIsNoSegment) {
  const StepView view = StepView::of(eight_ranks(), flagged_iterations(), 0);
  const IterationPoints& second = view.iterations.at(1);
  EXPECT_EQ(second.allreduces.size(), 2);
  ASSERT_TRUE(second.overflow_flag.has_value());
  EXPECT_EQ(second.overflow_flag->start, 19.25);
  EXPECT_EQ(second.overflow_flag->end, 19.5);
  EXPECT_EQ(view.segments.size(), 2);
}

TEST(IterationPoints, OfAnotherRank) {
  EXPECT_THAT([] { static_cast<void>(StepView::of(eight_ranks(), two_iterations(), 1)); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("rank 1 is not in the trace")));
}

TEST(IterationPoints, WithoutForwardKernels) {
  Plan plan = eight_ranks();
  plan.roles.front().tasks[forward_task].purpose.phase = StepPhase::backward;
  const StepView view = StepView::of(plan, two_iterations(), 0);
  EXPECT_EQ(view.iterations[0].bp_start, 0);
  EXPECT_EQ(view.iterations[0].fp_end, 0);
  EXPECT_EQ(view.fp_end, 0);
}

TEST(StepView, LastIterationSinceItsBegin) {
  const StepView view = StepView::of(eight_ranks(), two_iterations(), 0);
  EXPECT_EQ(view.fp_start, 10);
  EXPECT_EQ(view.fp_end, 2);
  EXPECT_EQ(view.bp_start, 2);
  EXPECT_EQ(view.bp_end, 6);
  EXPECT_EQ(view.iteration_end, 10);
  EXPECT_EQ(view.computing, 6.5);
  EXPECT_EQ(view.communicating, 3);
  EXPECT_EQ(view.exposed, 3);
  EXPECT_EQ(view.phases.update, 0.5);
  EXPECT_THAT(view.gradient_ready, ElementsAre(4, 4, 6));
  EXPECT_FALSE(view.checks.has_value());
  EXPECT_TRUE(view.activations.empty());
}

TEST(StepView, Segments) {
  Plan plan = eight_ranks();
  sim::Trace trace = two_iterations();
  // A kernel that is late hides half of the second allreduce.
  trace.add(kernel_span({backward_task, 1, 1}, 18, 18.5));
  const StepView view = StepView::of(plan, trace, 0);
  ASSERT_EQ(view.segments.size(), 2);
  const SegmentFigures& first = view.segments[0];
  EXPECT_EQ(first.segment, (Segment{0, 1}));
  EXPECT_EQ(first.collective, 0U);
  EXPECT_EQ(first.bytes, 6000U);
  EXPECT_EQ(first.share, 0.75);
  EXPECT_EQ(first.algorithm, "ring");
  EXPECT_EQ(first.ready, 4);
  EXPECT_EQ(first.start, 6);
  EXPECT_EQ(first.end, 8);
  EXPECT_EQ(first.hidden, 0);
  EXPECT_EQ(first.algbw, 3000);
  EXPECT_EQ(first.busbw, 5250);
  const SegmentFigures& second = view.segments[1];
  EXPECT_EQ(second.segment, (Segment{2, 2}));
  EXPECT_EQ(second.collective, 1U);
  EXPECT_EQ(second.hidden, 0.5);
  EXPECT_EQ(view.exposed, 2.5);
  EXPECT_EQ(view.not_overlapped, 2.5);
}

// Updates beside communication are over earlier where it ends earlier: they are overlapped, but they hide nothing.
TEST(StepView, UpdatesHideNoCommunication) {
  sim::Trace trace = two_iterations();
  trace.add(kernel_span({update_task, 0, 1}, 18, 18.25));
  const StepView view = StepView::of(eight_ranks(), trace, 0);
  EXPECT_EQ(view.segments[1].hidden, 0);
  EXPECT_EQ(view.exposed, 3);
  EXPECT_EQ(view.not_overlapped, 2.75);
  EXPECT_EQ(view.free(), 10 - 6.75 - 2.75);
}

TEST(StepView, ChecksEndWithTheFlag) {
  const StepView view = StepView::of(eight_ranks(), flagged_iterations(), 0);
  ASSERT_TRUE(view.checks.has_value());
  EXPECT_EQ(view.checks->start, 9);
  EXPECT_EQ(view.checks->kernels_end, 9.25);
  EXPECT_EQ(view.checks->algorithm, "ring");
  EXPECT_EQ(view.checks->flag.start, 9.25);
  EXPECT_EQ(view.checks->flag.end, 9.5);
  EXPECT_EQ(view.checks->end, 9.5);
  EXPECT_EQ(view.phases.update, 0.75);
  EXPECT_EQ(view.communicating, 3.25);
}

}  // namespace
}  // namespace hcclsim::hccl
