#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hccl/check/check.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "tests/support/built.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collectives/allreduce_algorithms.hpp"

/// Every algorithm passes every level of the checker, for any number of ranks and any size.
namespace hcclsim::hccl {
namespace {

using test::built;
using test::text_of;

void expect_all_correct(const std::vector<Rank>& rank_counts, const std::vector<std::uint64_t>& sizes) {
  for (const auto& [name, algorithm] : test::allreduce_algorithms()) {
    for (const Rank ranks : rank_counts) {
      if (!algorithm.fits(ranks)) continue;
      for (const std::uint64_t elements : sizes) {
        for (const Bytes alignment : {Bytes{4}, Bytes{128}}) {
          SCOPED_TRACE(fmt::format("{}, {} ranks, {} elements, alignment {}", name, ranks, elements, alignment));
          const CheckReport report =
              check(algorithm.build({ranks, elements, DataType::fp32, ReduceOp::sum, alignment}));
          ASSERT_TRUE(report.ok) << text_of(report);
          ASSERT_EQ(report.levels.size(), 7U);
        }
      }
    }
  }
}

TEST(Checker, EveryAlgorithmIsCorrectOnUpTo17Ranks) {
  expect_all_correct({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, {0, 1, 31, 1009});
}

TEST(Checker, EveryAlgorithmIsCorrectOn24To64Ranks) { expect_all_correct({24, 33, 64}, {1009}); }

TEST(Checker, RingOn1024Ranks) {
  const CheckReport report = check(ring_allreduce({1024, 1024 * 64}, true));
  EXPECT_TRUE(report.ok) << text_of(report);
  ASSERT_TRUE(report.distances);
  EXPECT_EQ(report.distances->steps, 2U * 1023);
  EXPECT_EQ(report.distances->sent, report.distances->least_sent);
}

/// A collective that consists of one loop of a ring.
Schedule one_loop(const Operation& spec) {
  Builder builder(spec, "ring");
  const Level level{builder.add_group(Group::block(spec.ranks)), {}, true};
  Strand strand{.group = level.group};
  strand.loops.push_back(spec.collective == Collective::reduce_scatter ? ring_reduce_scatter(builder, level, 0, 1)
                                                                       : ring_all_gather(builder, level, 0, 1));
  builder.add_stage("ring").strands.push_back(std::move(strand));
  return std::move(builder).finish();
}

TEST(Checker, KnowsWhatReduceScatterAndAllgatherHaveToDo) {
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather}) {
    for (const Rank ranks : {1U, 2U, 5U, 8U}) {
      for (const std::uint64_t elements : {0U, 1U, 31U, 640U}) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, {} elements", name_of(collective), ranks, elements));
        Schedule schedule = one_loop({.ranks = ranks, .elements = elements, .collective = collective});
        const CheckReport report = check(schedule);
        EXPECT_TRUE(report.ok) << text_of(report);
        schedule.collective = Collective::allreduce;
        schedule.elements *= ranks;
        EXPECT_EQ(check(schedule).ok, ranks == 1 || elements == 0);
      }
    }
  }
}

TEST(Checker, OrderThatComesByADetourIsNoRace) {
  // Ranks 1 and 3 reduce into rank 0, one after the other; that rank 1 is done is told by rank 2, which never touches
  // rank 0.
  Builder builder({4, 32}, "detour");
  builder.add_group(Group::block(4));
  builder.reserve_notifies(2);
  const auto peer = [](Rank rank) { return Peer{Peer::Kind::offset, static_cast<std::uint16_t>(rank + 1), {}}; };
  const Task reduce_there = transfer(TaskKind::write_reduce, peer(0), output({}), output({}));
  const std::vector<std::vector<Task>> tasks{{post(peer(1), {0}), wait({0})},
                                             {wait({0}), reduce_there, post(peer(2), {0})},
                                             {wait({0}), post(peer(3), {0})},
                                             {wait({0}), reduce_there, post(peer(0), {0})}};
  for (Rank rank = 0; rank < 4; ++rank) builder.add_group(Group::ordered(4, {rank}));
  Stage& stage = builder.add_stage("detour");
  for (Rank rank = 0; rank < 4; ++rank) {
    stage.strands.push_back({.group = static_cast<std::uint16_t>(rank + 1), .loops = {{.tasks = tasks[rank]}}});
  }
  Schedule schedule = std::move(builder).finish();
  const auto level_3 = [](const CheckReport& report) { return report.levels.at(3); };
  EXPECT_TRUE(level_3(check(schedule)).ok) << text_of(check(schedule));

  // Without the detour nobody says so.
  schedule.stages[0].strands[1].loops[0].tasks.back() = post(peer(0), {1});
  schedule.stages[0].strands[2].loops[0].tasks.clear();
  schedule.stages[0].strands[0].loops[0].tasks = {post(peer(1), {0}), post(peer(3), {0}), wait({0}), wait({1})};
  const CheckReport report = check(schedule);
  EXPECT_FALSE(level_3(report).ok);
  EXPECT_EQ(level_3(report).findings.at(0).kind, "reduction-order") << text_of(report);
}

/// Ranks 1 and 2 reduce into rank 0, in no fixed order.
Schedule free_star(DataType type, bool reads_between) {
  Builder builder({3, 32, type}, "star");
  for (Rank rank = 0; rank < 3; ++rank) builder.add_group(Group::ordered(3, {rank}));
  builder.reserve_notifies(3);
  const auto peer = [](Rank rank) { return Peer{Peer::Kind::offset, static_cast<std::uint16_t>(rank), {}}; };
  const Task reduce_there = transfer(TaskKind::write_reduce, peer(0), output({}), output({}));
  const std::vector<std::vector<Task>> tasks{{post(peer(1), {2}), post(peer(2), {2}), wait({0}), wait({1})},
                                             {wait({2}), reduce_there, post(peer(0), {0})},
                                             {wait({2}), reduce_there, post(peer(0), {1})}};
  Stage& stage = builder.add_stage("star");
  for (Rank rank = 0; rank < 3; ++rank) {
    stage.strands.push_back({.group = static_cast<std::uint16_t>(rank), .loops = {{.tasks = tasks[rank]}}});
  }
  if (reads_between) {  // between the two waits, when the second reduction may be under way
    std::vector<Task>& first = stage.strands[0].loops[0].tasks;
    first.insert(first.end() - 1, transfer(TaskKind::write, peer(1), output({}), output({})));
  }
  Schedule schedule = std::move(builder).finish();
  schedule.collective = Collective::reduce;
  return schedule;
}

TEST(Checker, IntegersAreReducedInAnyOrder) {
  for (const DataType type : {DataType::int8, DataType::uint16, DataType::int32, DataType::int64}) {
    const CheckReport report = check(free_star(type, false));
    EXPECT_TRUE(report.ok) << text_of(report);
    ASSERT_TRUE(report.order.has_value());
    EXPECT_TRUE(report.order->free);
    EXPECT_EQ(report.verdict,
              "correct in every interleaving: each wait takes the same post in all of them; order free: reductions of "
              "integers come out the same in any order");
    CheckOptions recorded;
    recorded.recorded_order = report.order->signature;
    const CheckReport bound = check(free_star(type, false), recorded);
    EXPECT_EQ(bound.verdict, "wrong: L5 finds order-changed");
  }
  for (const DataType type : {DataType::fp32, DataType::bf16}) {
    const CheckReport report = check(free_star(type, false));
    EXPECT_EQ(report.verdict, "wrong: L3 finds reduction-order") << name_of(type);
  }
  // Whoever reads must come before or behind all of them.
  const CheckReport read = check(free_star(DataType::int32, true));
  EXPECT_EQ(read.verdict, "wrong: L3 finds race") << text_of(read);
  EXPECT_FALSE(check(ring_allreduce({8, 1000, DataType::int32}, true)).order->free);
}

TEST(Checker, ReductionsOnTheWayAreThoseOfTheChip) {
  const Schedule ring = ring_allreduce({4, 256}, true);  // slices of 256 bytes
  CheckOptions options;
  options.no_reduction = [](Rank from, Rank to) { return from == 1 && to == 2 ? "not from 1 to 2" : ""; };
  const CheckReport report = check(ring, options);
  EXPECT_EQ(report.verdict, "wrong: L0 finds in-transit");
  EXPECT_EQ(report.levels.front().count, 3U);  // rounds of the first half
  EXPECT_THAT(report.levels.front().findings.front().message, testing::HasSubstr("not from 1 to 2"));
  options = {};
  options.no_reduction = [](Rank /*from*/, Rank /*to*/) { return ""; };
  options.reduction_alignment = 256;
  EXPECT_TRUE(check(ring, options).ok);
  options.reduction_alignment = 512;
  EXPECT_EQ(check(ring, options).verdict, "wrong: L0 finds in-transit");
  options = {};
  options.hbm = ring.payload() - 1;
  EXPECT_EQ(check(ring, options).verdict, "wrong: L0 finds hbm");
  options.hbm = ring.payload();
  EXPECT_TRUE(check(ring, options).ok);
}

TEST(Checker, StepsAndBytesBesideTheLeastPossible) {
  const Operation spec{8, 8 * 320};
  const Bytes n = 8 * 320 * 4;
  const auto expect = [&](const Schedule& schedule, const Distances& expected) {
    const CheckReport report = check(schedule);
    ASSERT_TRUE(report.distances) << text_of(report);
    EXPECT_EQ(report.distances->steps, expected.steps);
    EXPECT_EQ(report.distances->least_steps, expected.least_steps);
    EXPECT_EQ(report.distances->sent, expected.sent);
    EXPECT_EQ(report.distances->least_sent, 2 * 7 * n / 8);
    EXPECT_EQ(report.distances->reduced, expected.reduced);
    EXPECT_EQ(report.distances->least_reduced, 7 * n / 8);
  };
  expect(ring_allreduce(spec, true), {.steps = 14, .least_steps = 3, .sent = 14 * n / 8, .reduced = 7 * n / 8});
  expect(built<Algorithm::halving_doubling>(spec, true),
         {.steps = 6, .least_steps = 3, .sent = 14 * n / 8, .reduced = 7 * n / 8});
  // Seven queues at once.
  expect(built<Algorithm::mesh_two_shot>(spec, true),
         {.steps = 2, .least_steps = 1, .sent = 14 * n / 8, .reduced = 7 * n / 8});
  expect(mesh_one_shot_allreduce(spec, true), {.steps = 1, .least_steps = 1, .sent = 7 * n, .reduced = 7 * n});
}

TEST(Checker, OrderOfReductionAndItsErrorBound) {
  const Operation spec{8, 1000};
  const CheckReport ring = check(ring_allreduce(spec, true));
  const CheckReport halving = check(built<Algorithm::halving_doubling>(spec, true));
  ASSERT_TRUE(ring.order && halving.order);
  EXPECT_EQ(ring.order->additions, 7U);
  EXPECT_EQ(halving.order->additions, 3U);
  EXPECT_TRUE(ring.order->same_on_all_ranks);
  const double u = 1.0 / (1 << 24);
  EXPECT_DOUBLE_EQ(ring.order->error_bound, 7 * u / (1 - 7 * u));
  EXPECT_NE(ring.order->signature, halving.order->signature);
  // Who reduces, and whether on its way, does not change the order; nothing is rounded by max and in integers.
  EXPECT_EQ(check(ring_allreduce(spec, false)).order->signature, ring.order->signature);
  EXPECT_EQ(check(ring_allreduce({8, 1000, DataType::fp32, ReduceOp::max}, true)).order->error_bound, 0);
  EXPECT_EQ(check(ring_allreduce({8, 1000, DataType::int32}, true)).order->error_bound, 0);
}

TEST(Checker, RanksMayReduceInDifferentOrdersWhereNoBitDependsOnIt) {
  // Every rank starts with its own contribution and adds those of the others behind it.
  const auto refused_at = [](DataType type, ReduceOp op, Rank rotation_from) -> std::string {
    Schedule schedule = mesh_one_shot_allreduce({4, 128, type, op}, true);
    const Bytes slot = 128 * size_of(type);
    schedule.stages[1].strands[0].loops = {{.rounds = {3}}};
    schedule.stages[1].strands[0].loops[0].tasks = {reduce(scratch({}, {0, 0, 1, 0}, slot), output({}), false)};
    const CheckReport report = check(schedule, {.rotation_from = rotation_from});
    EXPECT_TRUE(report.order && !report.order->same_on_all_ranks) << text_of(report);
    return report.ok ? "" : report.levels.at(5).findings.at(0).kind;
  };
  for (const Rank rotation_from : {2U, 1000U}) {
    SCOPED_TRACE(fmt::format("by rotation from {} ranks", rotation_from));
    for (const DataType type : {DataType::int8, DataType::int32, DataType::uint64}) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
        EXPECT_EQ(refused_at(type, op, rotation_from), "") << name_of(type) << ' ' << name_of(op);
      }
    }
    for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64}) {
      for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
        EXPECT_EQ(refused_at(type, op, rotation_from), "") << name_of(type) << ' ' << name_of(op);
      }
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod}) {
        EXPECT_EQ(refused_at(type, op, rotation_from), "ranks-differ") << name_of(type) << ' ' << name_of(op);
      }
    }
  }
}

TEST(Checker, LimitsOfTheRankThatSuffice) {
  // A queue of the mesh has 5 tasks in its first stage, and all queues must be under way before one of them ends.
  const Schedule mesh = built<Algorithm::mesh_two_shot>({4, 128}, true);
  const CheckOptions enough{.notifies = mesh.notifies, .scratch = mesh.scratch, .queue_depth = 5};
  EXPECT_TRUE(check(mesh, enough).ok) << text_of(check(mesh, enough));
  EXPECT_TRUE(check(ring_allreduce({8, 1000}, true), {.queue_depth = 1}).ok);
}

}  // namespace
}  // namespace hcclsim::hccl
