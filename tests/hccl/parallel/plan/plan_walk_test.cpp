#include "hccl/parallel/plan/plan_walk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "tests/hccl/parallel/plan/objection.hpp"
#include "tests/support/training/pipelines.hpp"

namespace hcclsim::hccl {
namespace {

using models::Phase;
using testing::HasSubstr;

Plan plan_of(const PipelineShape& shape, Rank ranks_per_stage) {
  return make_plan(test::timed_stages(shape, ranks_per_stage, 1, 2),
                   test::overlapped(shape, shape.stages * ranks_per_stage), test::empty_schedule);
}

// No schedule ends in a deadlock, and with links that take no time all of them end at (m + (p - 1) / v)(tF + tB).
TEST(PlanWalk, MakespansOfAllSchedules) {
  const auto check = [](const PipelineShape& shape) {
    const double p = shape.stages;
    const double v = shape.chunks;
    const double m = shape.micro_batches;
    const PlanWalk walked = walk(plan_of(shape, 2));
    EXPECT_NEAR(walked.end, (m + (p - 1) / v) * 3, 1e-9) << p << ' ' << v << ' ' << m << ' ' << name_of(shape.schedule);
    for (const Seconds computing : walked.computing) EXPECT_NEAR(computing, 3 * m, 1e-9);
  };
  for (const std::uint32_t stages : {2U, 3U, 4U, 5U, 8U}) {
    for (std::uint32_t micro = stages; micro <= 3 * stages + 1; ++micro) {
      check({stages, micro, 1, PipelineSchedule::one_f_one_b});
      check({stages, micro, 1, PipelineSchedule::gpipe});
      for (const std::uint32_t chunks : {2U, 3U, 4U}) {
        check({stages, micro, chunks, PipelineSchedule::one_f_one_b_interleave});
        check({stages, micro, chunks, PipelineSchedule::gpipe_interleave});
      }
    }
  }
}

/// Programs of the stages whose cells take random times.
std::vector<StageProgram> randomly_timed(const PipelineShape& shape, bool like_each_other, std::mt19937& random) {
  std::vector<StageProgram> stages =
      test::timed_stages(shape, 1, 1, like_each_other ? static_cast<Seconds>(1 + random() % 4) : 2);
  std::uniform_real_distribution<double> times(0.5, 2);
  for (StageProgram& stage : stages) {
    models::Program program = *stage.program;
    for (models::Kernel& kernel : program.kernels) {
      if (!like_each_other && kernel.duration > 0) kernel.duration = times(random);
    }
    stage.program = std::make_shared<const models::Program>(std::move(program));
  }
  return stages;
}

/// When the last cell ends if cells wait for nothing but each other: all begin as early as they can.
Seconds longest_path(const PipelineShape& shape, const std::vector<StageProgram>& stages) {
  std::map<std::tuple<std::uint32_t, Phase, std::uint32_t>, Seconds> times;
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    for (const models::Kernel& kernel : stages[stage].program->micro_batch()) {
      times[{stage, kernel.phase, kernel.chunk}] += kernel.duration;
    }
  }
  std::map<std::tuple<std::uint32_t, Phase, std::uint32_t, std::uint32_t>, Seconds> ends;
  Seconds last = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
      Seconds end = 0;
      for (const Cell& cell : cells_of_stage(shape, stage)) {
        const bool forward = cell.phase == Phase::forward;
        const bool wraps = stage == (forward ? 0 : shape.stages - 1);  // to another chunk
        const bool begins = wraps && cell.chunk == (forward ? 0 : shape.chunks - 1);
        const std::uint32_t chunk = cell.chunk + (wraps ? (forward ? -1 : 1) : 0);
        const std::uint32_t source = (stage + shape.stages + (forward ? -1 : 1)) % shape.stages;
        if (!begins) end = std::max(end, ends[{source, cell.phase, chunk, cell.micro_batch}]);
        end += times[{stage, cell.phase, cell.chunk}];
        Seconds& known = ends[{stage, cell.phase, cell.chunk, cell.micro_batch}];
        changed = changed || end > known;
        known = std::max(known, end);
        last = std::max(last, end);
      }
    }
  }
  return last;
}

// The order of messages adds nothing, whatever cells take and however many micro-batches there are.
TEST(PlanWalk, MessagesDoNotHoldUpOtherCells) {
  using enum PipelineSchedule;
  std::mt19937 random(14);
  for (int round = 0; round < 60; ++round) {
    const std::uint32_t stages = 2 + random() % 5;
    const PipelineSchedule schedule =
        std::array{one_f_one_b, gpipe, one_f_one_b_interleave, gpipe_interleave}[round % 4];
    const PipelineShape shape{.stages = stages,
                              .micro_batches = stages + static_cast<std::uint32_t>(random() % (2 * stages)),
                              .chunks = interleaves(schedule) ? 2U + static_cast<std::uint32_t>(random() % 2) : 1U,
                              .schedule = schedule};
    const std::vector<StageProgram> programs = randomly_timed(shape, round % 3 == 0, random);
    const Plan plan = make_plan(programs, test::overlapped(shape, stages), test::empty_schedule);
    EXPECT_NEAR(walk(plan).end, longest_path(shape, programs), 1e-9)
        << stages << " stages, " << shape.micro_batches << " micro-batches, " << name_of(schedule);
  }
  // By the cells' times of a step with as long a backward pass as forward: (8 + 4 / 2) (2 + 2).
  const PipelineShape shape{5, 8, 2, one_f_one_b_interleave};
  const Plan plan = make_plan(test::timed_stages(shape, 1, 2, 2), test::overlapped(shape, 5), test::empty_schedule);
  EXPECT_NEAR(walk(plan).end, 40, 1e-9);
}

// The published share of idle time: (p - 1) / (v m + p - 1).
TEST(PlanWalk, Bubbles) {
  const auto bubble = [](const PipelineShape& shape) {
    const PlanWalk walked = walk(plan_of(shape, 1));
    return (walked.end - walked.computing.front()) / walked.end;
  };
  EXPECT_NEAR(bubble({8, 64, 1, PipelineSchedule::one_f_one_b}), 7.0 / 71, 1e-12);
  EXPECT_NEAR(bubble({8, 64, 5, PipelineSchedule::one_f_one_b_interleave}), 7.0 / 327, 1e-12);
  EXPECT_NEAR(bubble({8, 64, 4, PipelineSchedule::one_f_one_b_interleave}), 7.0 / 263, 1e-12);
}

// The next step begins where the last one has ended, rank by rank: when nothing comes back, the first stages fill the
// pipeline for it, and a step takes as long as what one stage computes.
TEST(PlanWalk, StepsThatFollowEachOther) {
  PipelineShape shape{4, 8, 1, PipelineSchedule::one_f_one_b};
  EXPECT_NEAR(walk(plan_of(shape, 1), 3).step, (8 + 3) * 3, 1e-9);
  EXPECT_NEAR(walk(plan_of(shape, 1), 3).end, (8 + 3) * 3, 1e-9);
  Plan applied = plan_of(shape, 1);
  for (Role& role : applied.roles) {
    std::vector<PlanTask> forward;
    std::vector<std::uint32_t> place_of(role.tasks.size(), Purpose::none);
    for (std::uint32_t number = 0; number < role.tasks.size(); ++number) {
      PlanTask task = role.tasks[number];
      if (task.purpose.phase != StepPhase::forward) continue;
      std::vector<std::uint32_t> after;
      for (const std::uint32_t before : task.after) {
        if (place_of[before] != Purpose::none) after.push_back(place_of[before]);
      }
      task.after = std::move(after);
      place_of[number] = static_cast<std::uint32_t>(forward.size());
      forward.push_back(std::move(task));
    }
    role.tasks = std::move(forward);
  }
  EXPECT_NEAR(walk(applied).step, 8 + 3, 1e-9);
  for (const std::uint32_t steps : {2U, 3U, 1000U}) EXPECT_NEAR(walk(applied, steps).step, 8, 1e-9);
}

// Two stages of which each wants to receive before it sends.
TEST(PlanWalk, ACircleIsNamed) {
  Plan plan = plan_of({2, 2, 1, PipelineSchedule::one_f_one_b}, 1);
  Role& role = plan.roles[1];
  // The last stage takes its second activation before it gives the first gradient back.
  std::vector<std::uint32_t> messages;
  for (std::uint32_t t = 0; t < role.tasks.size(); ++t) {
    if (!std::holds_alternative<KernelBlock>(role.tasks[t].work) &&
        !std::holds_alternative<CollectiveTask>(role.tasks[t].work)) {
      messages.push_back(t);
    }
  }
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(objection(plan), "");
  // Stage 0 sends both activations before it takes a gradient; now it takes the gradient of the second one first.
  std::vector<std::uint32_t> of_first;
  for (std::uint32_t t = 0; t < plan.roles[0].tasks.size(); ++t) {
    if (std::holds_alternative<ReceiveTask>(plan.roles[0].tasks[t].work)) of_first.push_back(t);
  }
  ASSERT_EQ(of_first.size(), 2U);
  // The first receive waits for what computes the second activation's gradient: behind the send that it precedes.
  PlanTask& first = plan.roles[0].tasks[of_first[0]];
  for (std::uint32_t t = of_first[0] + 1; t < plan.roles[0].tasks.size(); ++t) {
    if (!std::holds_alternative<SendTask>(plan.roles[0].tasks[t].work)) continue;
    first.after.push_back(t);
    break;
  }
  EXPECT_THAT(objection(plan), HasSubstr("each of these waits for the next"));
  EXPECT_THAT(objection(plan), HasSubstr("stage 0"));
}

TEST(PlanWalk, AMessageWithOneEnd) {
  Plan plan = plan_of({2, 2, 1, PipelineSchedule::one_f_one_b}, 1);
  for (PlanTask& task : plan.roles[1].tasks) {
    if (auto* receive = std::get_if<ReceiveTask>(&task.work)) receive->tag = 99;
  }
  EXPECT_THAT(objection(plan), HasSubstr("a message with one end"));
}

TEST(PlanWalk, RanksOfAGroupCallItsCollectivesInOneOrder) {
  Plan plan = plan_of({2, 2, 1, PipelineSchedule::one_f_one_b}, 1);
  plan.families.push_back({{{"both", {0, 1}}}});
  const auto family = static_cast<std::uint32_t>(plan.families.size() - 1);
  const auto first = static_cast<std::uint32_t>(plan.collectives.size());
  for (const char* name : {"one", "two"}) {
    const Operation operation{.ranks = 2, .elements = 1};
    plan.collectives.push_back(
        {family, operation, {test::empty_schedule(plan.families.back().groups.front(), operation)}, name});
  }
  for (std::uint32_t role = 0; role < 2; ++role) {
    for (std::uint32_t call = 0; call < 2; ++call) {
      plan.roles[role].tasks.push_back({.work = CollectiveTask{first + (call + role) % 2}, .stream = 1});
    }
  }
  EXPECT_THAT(objection(plan), HasSubstr("group both: rank 0 calls one where rank 1 calls two"));
  plan.roles[1].tasks.pop_back();
  plan.roles[1].tasks.pop_back();
  EXPECT_THAT(objection(plan), HasSubstr("rank 0 calls one where rank 1 calls nothing"));
}

}  // namespace
}  // namespace hcclsim::hccl
