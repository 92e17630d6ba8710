#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "hccl/parallel/plan/plan_classes.hpp"
#include "hccl/parallel/plan/plan_file.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "tests/hccl/parallel/plan/objection.hpp"
#include "tests/support/rank_walk.hpp"
#include "tests/support/training/pipelines.hpp"

// Plans that have been tampered with, against a walk of every rank for itself (tests/support/rank_walk.hpp).
namespace hcclsim::hccl {
namespace {

using testing::HasSubstr;

constexpr Rank replicas = 4;

Plan tampered_base(const PipelineShape& shape, const OptimizerParallel& sharing) {
  StepSpec step = test::overlapped(shape, shape.stages * replicas);
  if (sharing.kind == OptimizerParallelKind::dealt) step.dealt = DataType::fp32;
  return make_plan(test::timed_stages(shape, replicas, 1, 2, sharing), step, test::empty_schedule);
}

std::vector<Plan> valid_plans() {
  const std::vector<PipelineShape> shapes{{1, 2, 1, PipelineSchedule::one_f_one_b},
                                          {2, 3, 1, PipelineSchedule::one_f_one_b},
                                          {3, 4, 1, PipelineSchedule::gpipe},
                                          {2, 4, 2, PipelineSchedule::one_f_one_b_interleave},
                                          {3, 4, 2, PipelineSchedule::gpipe_interleave}};
  const std::vector<OptimizerParallel> sharings{{},
                                                {.kind = OptimizerParallelKind::on, .threshold = 0},
                                                {.kind = OptimizerParallelKind::zero1, .shard = 2},
                                                {.kind = OptimizerParallelKind::zero2},
                                                {.kind = OptimizerParallelKind::zero3}};
  std::vector<Plan> plans;
  for (const PipelineShape& shape : shapes) {
    for (const OptimizerParallel& sharing : sharings) plans.push_back(tampered_base(shape, sharing));
  }
  plans.push_back(tampered_base({1, 2}, {.kind = OptimizerParallelKind::dealt}));
  return plans;
}

class Tamperer {
 public:
  Tamperer(Plan& plan, std::uint64_t seed) : plan_(plan), random_(seed) {}

  /// Changes one field; returns what it is called, or nothing if this Plan has no such field.
  std::string change(std::size_t kind) {
    role_ = pick(plan_.roles.size());
    Role& role = plan_.roles[role_];
    PlanTask& task = role.tasks[pick(role.tasks.size())];
    switch (kind) {
      case 0:
        return of_message([&](std::int64_t& offset, auto&, auto&) {
          constexpr std::array<std::int64_t, 6> steps{1, -1, replicas, -static_cast<std::int64_t>(replicas), 2, -9};
          offset += steps[pick(steps.size())];
          return "offset";
        });
      case 1:
        return of_message([&](auto&, std::uint32_t& tag, auto&) {
          tag += 1 + static_cast<std::uint32_t>(pick(2));
          return "tag";
        });
      case 2:
        return of_message([&](auto&, auto&, std::uint32_t& message) {
          message = static_cast<std::uint32_t>(pick(plan_.messages.size()));
          return "message";
        });
      case 3:
        if (plan_.messages.empty()) return {};
        plan_.messages[pick(plan_.messages.size())].bytes += 4;
        return "bytes";
      case 4:
        return swap_tasks();
      case 5:
        if (auto* collective = std::get_if<CollectiveTask>(&task.work)) {
          collective->collective = static_cast<std::uint32_t>(pick(plan_.collectives.size()));
          return "collective";
        }
        return {};
      case 6:
        if (plan_.collectives.empty()) return {};
        plan_.collectives[pick(plan_.collectives.size())].family =
            static_cast<std::uint32_t>(pick(plan_.families.size()));
        return "family";
      case 7:
        if (plan_.collectives.empty()) return {};
        ++plan_.collectives[pick(plan_.collectives.size())].operation.ranks;
        return "ranks of a collective";
      case 8: {
        auto& groups = plan_.families[pick(plan_.families.size())].groups;
        auto& ranks = groups[pick(groups.size())].ranks;
        if (pick(3) == 0 && ranks.size() > 1) {
          ranks.pop_back();
        } else {
          ranks[pick(ranks.size())] = static_cast<Rank>(pick(plan_.ranks()));
        }
        return "group";
      }
      case 9:
        plan_.role_of[pick(plan_.ranks())] = static_cast<std::uint32_t>(pick(plan_.roles.size()));
        return "role_of";
      case 10: {
        const std::size_t number = 1 + pick(role.tasks.size() - 1);
        role.tasks[number].after.push_back(static_cast<std::uint32_t>(pick(number)));
        return "after";
      }
      case 11:
        task.stream = static_cast<std::uint32_t>(pick(role.streams.size()));
        return "stream";
      case 12:
        task.purpose.micro_batch += 1;
        return "micro-batch";
      default:
        task.purpose.phase = pick(2) == 0 ? StepPhase::forward : StepPhase::backward;
        return "phase";
    }
  }

  /// Gives a rank a copy of its role.
  void copy_role() {
    const Rank rank = static_cast<Rank>(pick(plan_.ranks()));
    plan_.roles.push_back(plan_.role(rank));
    plan_.role_of[rank] = static_cast<std::uint32_t>(plan_.roles.size() - 1);
  }

  static constexpr std::size_t kinds = 14;

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }

  template <typename Change>
  std::string of_message(const Change& change) {
    std::vector<PlanTask*> messages;
    for (PlanTask& task : plan_.roles[role_].tasks) {
      if (std::holds_alternative<SendTask>(task.work) || std::holds_alternative<ReceiveTask>(task.work)) {
        messages.push_back(&task);
      }
    }
    if (messages.empty()) return {};
    auto& work = messages[pick(messages.size())]->work;
    if (auto* send = std::get_if<SendTask>(&work)) return change(send->offset, send->tag, send->message);
    auto& receive = std::get<ReceiveTask>(work);
    return change(receive.offset, receive.tag, receive.message);
  }

  /// Two tasks of a stream change places; what they cannot wait for any more they do not wait for.
  std::string swap_tasks() {
    auto& tasks = plan_.roles[role_].tasks;
    const std::size_t one = pick(tasks.size());
    const std::size_t other = pick(tasks.size());
    if (tasks[one].stream != tasks[other].stream || tasks[one].stream == role_stream::compute) return {};
    std::swap(tasks[one], tasks[other]);
    for (const std::size_t number : {one, other}) {
      std::erase_if(tasks[number].after, [&](std::uint32_t before) { return before >= number; });
    }
    return "places of two tasks";
  }

  Plan& plan_;
  std::mt19937_64 random_;
  std::size_t role_ = 0;
};

TEST(PlanCheck, AgreesWithAWalkOfEveryRank) {
  std::size_t refused = 0;
  std::size_t accepted = 0;
  std::size_t circles = 0;
  std::uint64_t seed = 0;
  for (const Plan& valid : valid_plans()) {
    ASSERT_EQ(objection(valid), "");
    ASSERT_TRUE(test::RankWalk(valid).finishes());
    for (std::size_t kind = 0; kind < Tamperer::kinds; ++kind) {
      for (int again = 0; again < 6; ++again) {
        Plan plan = valid;
        Tamperer tamperer(plan, ++seed);
        if (again % 2 == 1) tamperer.copy_role();
        const std::string field = tamperer.change(kind);
        if (field.empty()) continue;
        const std::string what = objection(plan);
        EXPECT_EQ(what.empty(), test::RankWalk(plan).finishes()) << "seed " << seed << ", " << field << ": " << what;
        (what.empty() ? accepted : refused) += 1;
        circles += what.find("each of these waits for the next") != std::string::npos ? 1 : 0;
      }
    }
  }
  // The changes are of both sorts; several are circles.
  EXPECT_GT(refused, 500U);
  EXPECT_GT(accepted, 200U);
  EXPECT_GT(circles, 10U);
}

// A copy of a role is a class of its own, and so are the ranks that it meets, and no others.
TEST(PlanCheck, ARankMayHaveACopyOfItsRole) {
  const PipelineShape shape{4, 8, 1, PipelineSchedule::one_f_one_b};
  Plan plan = tampered_base(shape, {});
  EXPECT_EQ(walk(plan).classes, 4U);
  const Seconds end = walk(plan).end;
  plan.roles.push_back(plan.roles[0]);
  plan.role_of[3] = 4;
  const PlanWalk walked = walk(plan);
  // Rank 3 meets ranks 7, 11 and 15; all meet the replicas of their stages.
  EXPECT_EQ(walked.classes, 8U);
  EXPECT_DOUBLE_EQ(walked.end, end);
  EXPECT_TRUE(test::RankWalk(plan).finishes());
  const Plan read = plan_of_json("plan.json", plan_json(plan));
  EXPECT_EQ(objection(read), "");
  // The copy's kernels take longer: the whole step does.
  auto slow = std::make_shared<models::Program>(*plan.roles[4].program);
  for (models::Kernel& kernel : slow->kernels) kernel.duration *= 2;
  plan.roles[4].program = slow;
  EXPECT_GT(walk(plan).end, end);
}

// Messages that take time delay a step, each where both ends wait for it.
TEST(PlanCheck, MeetingsMayTakeTime) {
  const PipelineShape shape{2, 2, 1, PipelineSchedule::gpipe};
  const Plan plan = make_plan(test::timed_stages(shape, 1, 1, 2), test::overlapped(shape, 2), test::empty_schedule);
  const Seconds ideal = walk(plan).end;
  const auto time = [](const PlanTask& task, Rank /*rank*/) {
    return std::holds_alternative<SendTask>(task.work) ? 1.0 : 0.0;
  };
  // The first activation and the last gradient are on the way while nobody computes what they are needed for.
  EXPECT_NEAR(first_step(plan, time).end, ideal + 2, 1e-9);
}

// Ranks are many and classes are few: what walks does not depend on the replicas.
TEST(PlanCheck, ReplicasAreWalkedOnce) {
  const PipelineShape shape{4, 8, 1, PipelineSchedule::one_f_one_b};
  constexpr Rank many = 2048;
  const Plan plan = make_plan(test::timed_stages(shape, many, 1, 2), test::overlapped(shape, shape.stages * many),
                              test::empty_schedule);
  EXPECT_EQ(plan.ranks(), 8192U);
  EXPECT_EQ(walk(plan).classes, 4U);
  EXPECT_NEAR(walk(plan).end, (8 + 3) * 3, 1e-9);
}

// Every rank of a role is checked, not the first one alone.
TEST(PlanCheck, SaysWhatIsWrong) {
  const Plan valid = tampered_base({2, 3, 1, PipelineSchedule::one_f_one_b}, {});
  const auto refusal = [&](const std::function<void(Plan&)>& change) {
    Plan plan = valid;
    change(plan);
    return objection(plan);
  };
  const auto of_send = [](Plan& plan, std::uint32_t role) -> SendTask& {
    for (PlanTask& task : plan.roles[role].tasks) {
      if (auto* send = std::get_if<SendTask>(&task.work)) return *send;
    }
    throw std::logic_error("no send");
  };
  // Rank 0 would reach rank 5, rank 3 rank 8, which is not there.
  EXPECT_THAT(
      refusal([&](Plan& plan) { of_send(plan, 0).offset = 5; }),
      HasSubstr("stage 0 rank 3: relu1.to_stage_1:forward (micro-batch 0, messages stream): its other end would "
                "be rank 8; accepted: 0 to 7"));
  EXPECT_THAT(refusal([&](Plan& plan) { of_send(plan, 0).offset = 0; }), HasSubstr("without rank 0 itself"));
  EXPECT_THAT(refusal([&](Plan& plan) { of_send(plan, 0).offset = 3; }), HasSubstr("a message with one end"));
  EXPECT_THAT(refusal([&](Plan& plan) { plan.messages[of_send(plan, 0).message].bytes = 36; }),
              HasSubstr("it sends 36 bytes, the other end receives 16"));
  EXPECT_THAT(refusal([&](Plan& plan) { of_send(plan, 0).message = of_send(plan, 1).message; }), HasSubstr(" meets "));
  EXPECT_THAT(refusal([](Plan& plan) { plan.collectives[0].operation.ranks = 3; }),
              HasSubstr("allreduce1 is a collective of 3 ranks; group stage0_replicas0, in which it is called, has 4"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.collectives[0].family = 1; }),
              HasSubstr("stage 0 rank 0 calls allreduce1, but is in no group of its family 1"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.families[0].groups[0].ranks[2] = 1; }),
              HasSubstr("group stage0_replicas0: rank 1 is in it twice"));
  EXPECT_THAT(refusal([](Plan& plan) {
                plan.families[0].groups.push_back({"more", {3}});
              }),
              HasSubstr("group more: rank 3 is in it twice, or in another group of its family too"));
  // Sends 1 and 2 of stage 0 change places: the third activation is received as the second.
  const auto places_of = [](const std::vector<PlanTask>& tasks, auto kind) {
    std::vector<std::size_t> places;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      if (std::holds_alternative<decltype(kind)>(tasks[t].work)) places.push_back(t);
    }
    return places;
  };
  EXPECT_THAT(refusal([&](Plan& plan) {
                auto& tasks = plan.roles[0].tasks;
                const auto sends = places_of(tasks, SendTask{});
                std::swap(tasks[sends[1]].work, tasks[sends[2]].work);
                std::swap(tasks[sends[1]].purpose, tasks[sends[2]].purpose);
              }),
              HasSubstr("it is of the forward pass of micro-batch 2, the other end of the forward pass of "
                        "micro-batch 1"));
  // The first gradient is to come before the activation that it is of has been sent.
  const std::string circle = refusal([&](Plan& plan) {
    auto& tasks = plan.roles[0].tasks;
    std::swap(tasks[places_of(tasks, SendTask{})[0]], tasks[places_of(tasks, ReceiveTask{})[0]]);
  });
  EXPECT_THAT(circle, HasSubstr("the Plan cannot finish; each of these waits for the next: stage 0 rank 0"));
  EXPECT_THAT(circle, HasSubstr(" -> "));
}

/// A file with one value changed.
std::string refusal_of_file(const std::function<void(Json&)>& change) {
  Json json = plan_json(tampered_base({2, 3, 1, PipelineSchedule::one_f_one_b}, {}));
  change(json);
  try {
    static_cast<void>(plan_of_json("plan.json", json));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "plan");
    return error.what();
  }
  return {};
}

TEST(PlanCheck, FilesAreReadStrictly) {
  EXPECT_EQ(refusal_of_file([](Json&) {}), "");
  const auto task = [](Json& json) -> Json& { return json["roles"][0]["tasks"][0]; };
  EXPECT_THAT(refusal_of_file([&](Json& json) { task(json)["kernels"]["duration_s"] = -1.0; }),
              HasSubstr("plan.json: stage 0, task 0: 'duration_s' is -1, accepted: 0 or more"));
  EXPECT_EQ(refusal_of_file([&](Json& json) { task(json)["kernels"]["idle_s"] = 0.0; }), "");
  EXPECT_THAT(refusal_of_file([&](Json& json) { task(json)["kernels"]["idle_s"] = 1000.0; }),
              HasSubstr("stage 0, task 0: 'idle_s' is more than 'duration_s'"));
  EXPECT_THAT(refusal_of_file([&](Json& json) { task(json)["colour"] = 1; }),
              HasSubstr("stage 0, task 0 has 'colour', which is unknown; accepted: stream, phase"));
  EXPECT_THAT(refusal_of_file([&](Json& json) { task(json)["host_s"] = 1.0; }),
              HasSubstr("stage 0, task 0 must have one of kernels, collective, send, receive, host_s"));
  EXPECT_THAT(refusal_of_file([&](Json& json) { task(json)["kernels"]["names"] = 1; }), HasSubstr("has 'names'"));
  EXPECT_THAT(refusal_of_file([](Json& json) { json["comment"] = ""; }), HasSubstr("the Plan has 'comment'"));
  EXPECT_THAT(refusal_of_file([](Json& json) { json["families"][0][0]["size"] = 4; }), HasSubstr("a group has 'size'"));
  EXPECT_THAT(refusal_of_file([](Json& json) {
                json["families"][0] = Json::object({{"a", 1}});
              }),
              HasSubstr("a family is no list of groups"));
  EXPECT_THAT(refusal_of_file([](Json& json) { json["messages"][0]["tag"] = 4; }), HasSubstr("a message has 'tag'"));
  EXPECT_THAT(refusal_of_file([](Json& json) { json["collectives"][0]["kind"] = "allsum"; }),
              HasSubstr("plan.json: allreduce1: "));
  EXPECT_THAT(refusal_of_file([](Json& json) { json["collectives"][0]["dtype"] = "fp7"; }),
              HasSubstr("plan.json: allreduce1: "));
  EXPECT_THAT(refusal_of_file([](Json& json) {
                for (std::size_t rank = 4; rank < 8; ++rank) json["role_of"][rank] = 0U;
              }),
              HasSubstr("role_of: no rank has role 1"));
  for (const Json& offset : {Json(18446744073709551615U), Json(std::int64_t{-5'000'000'000}), Json(0.5), Json("1")}) {
    EXPECT_THAT(refusal_of_file([&](Json& json) {
                  for (std::size_t t = 0;; ++t) {
                    Json& one = json["roles"][0]["tasks"][t];
                    if (!one.contains("send")) continue;
                    one["send"]["offset"] = offset;
                    return;
                  }
                }),
                HasSubstr("'offset' is "));
  }
}

// A network that is not trained gives its results in a phase of their own.
TEST(PlanCheck, PlansOfNetworksThatAreNotTrainedAreRead) {
  PipelineShape shape{2, 2, 1, PipelineSchedule::one_f_one_b};
  Plan plan = tampered_base(shape, {});
  for (PlanTask& task : plan.roles[0].tasks) {
    if (std::holds_alternative<CollectiveTask>(task.work)) task.purpose.phase = StepPhase::result;
  }
  EXPECT_EQ(objection(plan_of_json("plan.json", plan_json(plan))), "");
}

}  // namespace
}  // namespace hcclsim::hccl
