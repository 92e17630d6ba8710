#include "hccl/training/traced_cells.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;

PlanTask kernels(const Purpose& purpose) { return {.work = KernelBlock{0, 2}, .purpose = purpose}; }

sim::Span kernel(std::uint32_t task, Seconds start, Seconds end) {
  sim::Span span;
  span.id.task = task;
  span.start = start;
  span.end = end;
  span.kind = sim::SpanKind::kernel;
  return span;
}

/// "F1 1..4" of the cells of a rank whose tasks have these purposes, two kernels each and a message between them.
std::vector<std::string> cells(const std::vector<Purpose>& purposes) {
  Plan plan;
  Role role{.program = nullptr, .streams = {StreamKind::compute}, .tasks = {}};
  std::vector<sim::Span> spans;
  Seconds now = 0;
  for (const Purpose& purpose : purposes) {
    const auto task = static_cast<std::uint32_t>(role.tasks.size());
    role.tasks.push_back(kernels(purpose));
    spans.push_back(kernel(task, now, now + 1));
    spans.push_back(kernel(task, now + 2, now + 4));
    spans.push_back(kernel(task, now, now + 9));
    spans.back().kind = sim::SpanKind::collective;
    now += 4;
  }
  plan.roles.push_back(std::move(role));
  plan.role_of = {0};
  std::vector<const sim::Span*> of_rank;
  for (const sim::Span& span : spans) of_rank.push_back(&span);
  std::vector<std::string> text;
  for (const TracedCell& cell : traced_cells(plan, of_rank)) {
    text.push_back(fmt::format("{} {}..{} of stage {}", cell.name, cell.start, cell.end, cell.stage));
  }
  return text;
}

TEST(TracedCells, LastFromTheirFirstKernelToTheirLast) {
  EXPECT_THAT(cells({{.phase = StepPhase::forward, .stage = 3},
                     {.phase = StepPhase::forward, .stage = 3, .micro_batch = 1},
                     {.phase = StepPhase::backward, .stage = 3},
                     {.phase = StepPhase::update, .stage = 3}}),
              ElementsAre("F0 0..4 of stage 3", "F1 4..8 of stage 3", "B0 8..12 of stage 3"));
}

TEST(TracedCells, HaveTheirChunkInTheirNames) {
  EXPECT_THAT(cells({{.phase = StepPhase::forward},
                     {.phase = StepPhase::forward, .chunk = 1, .micro_batch = 2},
                     {.phase = StepPhase::forward}}),
              ElementsAre("F0.0 0..12 of stage 0", "F1.2 4..8 of stage 0"));
}

TEST(TracedCells, OneMicroBatchSaysNothing) {
  EXPECT_THAT(cells({{.phase = StepPhase::forward}, {.phase = StepPhase::backward}}), ElementsAre());
}

}  // namespace
}  // namespace hcclsim::hccl
