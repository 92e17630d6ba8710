#include "hccl/parallel/comm_reuse/comm_reuse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/plan/plan_walk.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A Plan of two ranks on two servers whose role calls collectives of these sizes, so many times each.
struct Calls {
  std::uint64_t elements = 0;
  std::uint32_t count = 0;
  std::uint32_t stream = role_stream::operators;
};

Plan plan_of(const std::vector<Calls>& all, const std::vector<Segment>& segments = {}) {
  auto program = std::make_shared<models::Program>();
  program->kernels.resize(8);
  Plan plan;
  Role& role = plan.roles.emplace_back();
  role.program = program;
  role.streams.assign(role_stream::compression, StreamKind::communication);
  role.streams[role_stream::compute] = StreamKind::compute;
  role.segments = segments;
  role.tasks.push_back({.work = KernelBlock{0, 8}, .stream = role_stream::compute});
  plan.role_of = {0, 0};
  plan.families = {{{Communicator{"pair", {0, 1}}}}};
  for (const Calls& calls : all) {
    const auto number = static_cast<std::uint32_t>(plan.collectives.size());
    plan.collectives.push_back({.family = 0,
                                .operation = {.ranks = 2, .elements = calls.elements},
                                .schedules = {std::make_shared<Schedule>()},
                                .name = "sum",
                                .segment = segments.empty() ? Purpose::none : 0});
    for (std::uint32_t i = 0; i < calls.count; ++i) {
      role.tasks.push_back({.work = CollectiveTask{number}, .stream = calls.stream, .after = {0}});
    }
  }
  return plan;
}

CommReuse two_servers(std::uint32_t limit = CommReuse::default_limit) { return {.limit = limit, .servers = {0, 1}}; }

// The documentation's example: 30 operators of one class, three on a stream.
TEST(CommReuse, ThirtyOperatorsNeedTenStreamsOrOne) {
  const CommReuseReport report = comm_reuse_report(plan_of({{100, 30}}), two_servers());
  ASSERT_EQ(report.roles.size(), 1U);
  const RoleAccount& role = report.roles.front();
  EXPECT_EQ(role.before.communication, 10U);
  EXPECT_EQ(role.before.secondary, 30U);
  EXPECT_EQ(role.before.compute, 1U);
  EXPECT_EQ(role.before.streams(), 41U);
  EXPECT_EQ(role.before.operators, 30U);
  EXPECT_EQ(role.after.communication, 1U);
  EXPECT_EQ(role.after.streams(), 5U);
  EXPECT_EQ(role.after.operators, 1U);
  EXPECT_EQ(role.replaced, 30U);
  EXPECT_DOUBLE_EQ(role.before.compile, 30 * assumed_compile);
  EXPECT_DOUBLE_EQ(role.after.compile, assumed_compile + 30 * assumed_call);
  EXPECT_EQ(report.classes.front().title, "allreduce of 400 bytes, fp32, over 2 ranks in groups as 0-1");
}

// Classes of 600, 500 and 300 operators: the second one would make 1100, more than the limit.
TEST(CommReuse, AClassBeyondTheLimitIsLeftOut) {
  const CommReuseReport report = comm_reuse_report(plan_of({{1, 600}, {2, 500}, {3, 300}}), two_servers(1000));
  ASSERT_EQ(report.classes.size(), 3U);
  EXPECT_TRUE(report.classes[0].reused);
  EXPECT_FALSE(report.classes[1].reused);
  EXPECT_EQ(report.classes[1].reason, "over the limit");
  EXPECT_TRUE(report.classes[2].reused);
  EXPECT_EQ(report.roles.front().replaced, 900U);
  EXPECT_EQ(report.roles.front().after.operators, 502U);
}

/// Ranks 0 and 1 in one server, 2 and 3 in another: collectives of pairs in a server, of pairs across, and of all.
Plan plan_of_groups(std::uint32_t count) {
  Plan plan = plan_of({{1, count}, {2, count}, {3, count}});
  plan.role_of = {0, 0, 0, 0};
  plan.families = {{{Communicator{"near0", {0, 1}}, Communicator{"near1", {2, 3}}}},
                   {{Communicator{"far0", {0, 2}}, Communicator{"far1", {1, 3}}}},
                   {{Communicator{"all", {0, 1, 2, 3}}}}};
  for (std::uint32_t number = 0; number < 3; ++number) plan.collectives[number].family = number;
  return plan;
}

// Two of each kind: 2 · 125 tasks in a server, 2 · 300 across, 2 · 300 of all, on streams of 1024.
TEST(CommReuse, GroupsWithoutStreamsOfTheirOwnShareThem) {
  const auto streams = [](std::uint32_t count, GroupParallel groups) {
    const CommReuse reuse{.limit = 0, .servers = {0, 0, 1, 1}, .groups = groups};
    return comm_reuse_report(plan_of_groups(count), reuse).roles.front().before.communication;
  };
  EXPECT_EQ(streams(1, GroupParallel::all), 3U);
  EXPECT_EQ(streams(1, GroupParallel::same_server), 2U);
  EXPECT_EQ(streams(1, GroupParallel::none), 1U);  // 725 tasks
  EXPECT_EQ(streams(2, GroupParallel::all), 3U);
  EXPECT_EQ(streams(2, GroupParallel::same_server), 3U);  // 1200 tasks of the others
  EXPECT_EQ(streams(2, GroupParallel::none), 2U);         // 250 + 600, then 600
}

TEST(CommReuse, ModesOfGroupsByName) {
  for (const GroupParallel mode : {GroupParallel::all, GroupParallel::same_server, GroupParallel::none}) {
    EXPECT_EQ(parse_group_parallel(name_of(mode)), mode);
  }
  EXPECT_THAT(test::refusal("option", [] { (void)parse_group_parallel("some"); }),
              HasSubstr("accepted: all_group_parallel, same_server_group_parallel, no_group_parallel"));
}

TEST(CommReuse, WhatFitsOnAStreamIsNotShared) {
  const auto reused = [](std::uint32_t count, const CommReuse& reuse) {
    return comm_reuse_report(plan_of({{1, count}}), reuse).classes.front().reused;
  };
  EXPECT_FALSE(reused(3, two_servers()));
  EXPECT_TRUE(reused(4, two_servers()));
  // In one server a collective is 125 tasks: eight fit.
  EXPECT_FALSE(reused(8, {.servers = {0, 0}}));
  EXPECT_TRUE(reused(9, {.servers = {0, 0}}));
  EXPECT_FALSE(reused(9, {.limit = 8, .servers = {0, 0}}));
}

TEST(CommReuse, FusedTensorsAndBroadcastsHaveNoClass) {
  EXPECT_TRUE(comm_reuse_report(plan_of({{1, 30}}, {{0, 1}}), two_servers()).classes.empty());
  // Where nothing is fused, each gradient has an operator of its own.
  EXPECT_EQ(comm_reuse_report(plan_of({{1, 30}}, {{0, 0}, {1, 1}}), two_servers()).classes.size(), 1U);
  Plan broadcasts = plan_of({{1, 30}});
  broadcasts.collectives.front().operation.collective = Collective::broadcast;
  const CommReuseReport report = comm_reuse_report(broadcasts, two_servers());
  EXPECT_TRUE(report.classes.empty());
  EXPECT_EQ(report.roles.front().after.operators, 30U);
}

TEST(CommReuse, ClassesDifferInSizeTypeReductionAndGroup) {
  Plan plan = plan_of({{1, 4}, {1, 4}, {2, 4}, {1, 4}, {1, 4}});
  plan.collectives[3].operation.type = DataType::fp16;
  plan.collectives[4].operation.op = ReduceOp::max;
  const CommReuseReport report = comm_reuse_report(plan, two_servers());
  ASSERT_EQ(report.classes.size(), 4U);
  EXPECT_THAT(report.classes.front().calls, ElementsAre(8));
}

TEST(CommReuse, CallsAreThreadedOnOneToken) {
  Plan plan = plan_of({{1, 4, role_stream::operators}, {2, 4, role_stream::communication}, {3, 2}});
  reuse_communication(plan, two_servers());
  const Role& role = plan.roles.front();
  ASSERT_EQ(role.streams.size(), role_stream::compression + 2U);
  EXPECT_EQ(role.stream_title(role_stream::compression), "shared");
  EXPECT_EQ(plan.families.size(), 3U);
  EXPECT_EQ(plan.families[1].groups.front().ranks, plan.families[0].groups.front().ranks);
  EXPECT_NE(plan.families[1].groups.front().name, plan.families[0].groups.front().name);
  for (std::uint32_t call = 1; call <= 4; ++call) {
    EXPECT_EQ(role.tasks[call].stream, role_stream::compression);
    EXPECT_THAT(role.tasks[call].after, ElementsAre(0));
  }
  // The first call of the second class follows the last one of the first.
  EXPECT_EQ(role.tasks[5].stream, role_stream::compression + 1U);
  EXPECT_THAT(role.tasks[5].after, ElementsAre(0, 4));
  EXPECT_THAT(role.tasks[6].after, ElementsAre(0));
  // What is not shared keeps its stream, and its place behind what was there before it.
  EXPECT_EQ(role.tasks[9].stream, role_stream::operators);
  EXPECT_THAT(role.tasks[9].after, ElementsAre(0, 4));
  EXPECT_EQ(walk(plan).classes, 1U);
}

TEST(CommReuse, WithoutALimitAboveZeroThePlanStaysAsItIs) {
  Plan plan = plan_of({{1, 30}});
  const CommReuseReport report = comm_reuse_report(plan, two_servers(0));
  EXPECT_EQ(report.roles.front().after.streams(), report.roles.front().before.streams());
  reuse_communication(plan, two_servers(0));
  EXPECT_EQ(plan.families.size(), 1U);
  EXPECT_EQ(plan.roles.front().streams.size(), std::size_t{role_stream::compression});
}

TEST(CommReuse, TooManyStreamsFail) {
  CommReuse reuse = two_servers(0);
  reuse.streams.streams = 40;
  const Plan plan = plan_of({{100, 30}});
  const auto failure = [&]() -> std::string {
    try {
      require_streams(comm_reuse_report(plan, reuse));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::simulated_failure);
      EXPECT_EQ(error.kind(), "streams");
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(failure(), HasSubstr("total stream number 41 exceeds the limit of 40: 1 for computation, 10 for 30 "
                                   "communication operators, 30 beside these; --comm-reuse -1 shares operators"));
  reuse.limit = 5;
  EXPECT_THAT(failure(),
              HasSubstr("--comm-reuse 5 has replaced 0 of 30 operators that could be shared; --comm-reuse 30 "
                        "allows all"));
  reuse.limit = CommReuse::default_limit;
  require_streams(comm_reuse_report(plan, reuse));
}

TEST(CommReuse, TheVariableAsUsersSetIt) {
  EXPECT_EQ(parse_comm_reuse("-1").limit, 1000U);
  EXPECT_EQ(parse_comm_reuse("7").limit, 7U);
  EXPECT_EQ(parse_comm_reuse("off").limit, 0U);
  EXPECT_TRUE(parse_comm_reuse("off").warning.empty());
  EXPECT_THAT(parse_comm_reuse("0").warning, HasSubstr("0 is neither -1 nor positive"));
  EXPECT_THAT(parse_comm_reuse("-2").warning, HasSubstr("-2"));
  for (const char* text : {"", "on", "1.5", "1000000000000"}) {
    EXPECT_THAT(test::refusal("environment", [&] { (void)parse_comm_reuse(text); }), HasSubstr("is no number")) << text;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
