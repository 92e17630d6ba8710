#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/check/check.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "tests/support/built.hpp"
#include "tests/support/refused.hpp"

/// WrongSchedule schedules, written by hand with one defect each: each is refused at the right level, with the right
/// kind of finding, and the message names what is wrong. A level that is refused is the first one that has findings.
namespace hcclsim::hccl {
namespace {

/// 4 ranks, 4 slices of 128 bytes. Tasks of both loops: post "ready" to the left, wait, write to the right, post
/// "written", wait.
constexpr std::uint64_t elements = 128;
Schedule ring() { return ring_allreduce({4, elements}, true); }
Schedule ring_by_core() { return ring_allreduce({4, elements}, false); }
Schedule mesh() { return test::built<Algorithm::mesh_two_shot>({4, elements}, true); }
Schedule halving() { return test::built<Algorithm::halving_doubling>({4, elements}, true); }

Strand& strand_of(Schedule& schedule, std::size_t stage = 0) { return schedule.stages.at(stage).strands.at(0); }
Task& task_of(Schedule& schedule, std::size_t loop, std::size_t task) {
  return strand_of(schedule).loops.at(loop).tasks.at(task);
}
void erase(Schedule& schedule, std::size_t loop, TaskKind kind, std::size_t which = 0) {
  std::vector<Task>& tasks = strand_of(schedule).loops.at(loop).tasks;
  for (auto task = tasks.begin(); task != tasks.end(); ++task) {
    if (task->kind != kind || which-- != 0) continue;
    tasks.erase(task);
    return;
  }
  internal_error("no such task");
}

/// Lists of tasks of each rank, on queue 0 unless `queues` gives them others. Group 0 is all ranks; group r+1 is rank r
/// alone.
Schedule by_hand(Rank ranks, std::uint32_t notifies, const std::vector<std::pair<Rank, std::vector<Task>>>& lists,
                 const std::vector<std::uint32_t>& queues = {}) {
  Builder builder({ranks, 32}, "by hand");
  builder.add_group(Group::block(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) builder.add_group(Group::ordered(ranks, {rank}));
  builder.reserve_notifies(notifies);
  Stage& stage = builder.add_stage("by hand");
  for (std::size_t i = 0; i < lists.size(); ++i) {
    Strand strand{.group = static_cast<std::uint16_t>(lists[i].first + 1),
                  .first_queue = queues.empty() ? 0 : queues[i]};
    strand.loops.push_back({.tasks = lists[i].second});
    stage.strands.push_back(strand);
  }
  return std::move(builder).finish();
}

/// Peer of a task in by_hand.
Peer rank(Rank number) { return {Peer::Kind::offset, static_cast<std::uint16_t>(number + 1), {0, 0, 0, 0}}; }
const Range whole = output({});

struct WrongSchedule {
  const char* name;
  const char* level;
  const char* kind;
  const char* message;
  std::function<Schedule()> schedule;
  CheckOptions options{};
};

Schedule changed(Schedule schedule, const std::function<void(Schedule&)>& change) {
  change(schedule);
  return schedule;
}

void expect_refused_as(const std::vector<WrongSchedule>& schedules) {
  for (const WrongSchedule& wrong : schedules)
    test::expect_refused(check(wrong.schedule(), wrong.options), {wrong.name, wrong.level, wrong.kind, wrong.message});
}

TEST(CheckerRefuses, FormOfTheSchedule) {
  const auto ring_with = [](std::function<void(Schedule&)> change) {
    return [change = std::move(change)] { return changed(ring(), change); };
  };
  expect_refused_as({
      {"no ranks", "L0", "schedule", "at least one rank", ring_with([](Schedule& s) { s.ranks = 0; })},
      {"alignment cuts elements", "L0", "alignment", "alignment 6 is not a multiple of the 4 bytes of fp32",
       ring_with([](Schedule& s) { s.alignment = 6; })},
      {"strand of no group", "L0", "group", "group 9; the schedule has 1",
       ring_with([](Schedule& s) { strand_of(s).group = 9; })},
      {"more queues than there are", "L0", "queue", "queues 0+2; a rank has 1",
       ring_with([](Schedule& s) { strand_of(s).queues = 2; })},
      {"two strands on one queue", "L0", "queue", "two strands want queue 0 of rank 0",
       ring_with([](Schedule& s) { s.stages[0].strands.push_back(s.stages[0].strands[0]); })},
      {"no parts", "L0", "range", "cut into 0 parts",
       ring_with([](Schedule& s) { task_of(s, 0, 2).source.cuts[0].parts = 0; })},
      {"cut by no group", "L0", "group", "cut by group 7",
       ring_with([](Schedule& s) { task_of(s, 0, 2).source.cuts[0].group = 7; })},
      {"write to nobody", "L0", "group", "a write-reduce needs a peer",
       ring_with([](Schedule& s) { task_of(s, 0, 2).peer = {}; })},
      {"peer is no rank", "L0", "peer", "peer 3; there are 3 ranks", ring_with([](Schedule& s) { s.ranks = 3; })},
      {"peer is no position", "L0", "peer", "position 4 in a group of 4",
       [] { return changed(halving(), [](Schedule& s) { task_of(s, 0, 0).peer.value.base = 2; }); }},
      {"too many halvings", "L0", "range", "3 halvings of 4 parts",
       [] { return changed(halving(), [](Schedule& s) { task_of(s, 0, 2).source.cuts[0].index.base = 2; }); }},
  });
}

TEST(CheckerRefuses, FormOfTasks) {
  expect_refused_as({
      {"peer is the rank itself", "L0", "peer", "rank 0, queue 0, task 2 (write-reduce to rank 0",
       [] { return changed(ring(), [](Schedule& s) { task_of(s, 0, 2).peer.value.base = 0; }); }},
      {"notify beyond the last", "L0", "notify", "notify 99; a rank has 4",
       [] { return changed(ring(), [](Schedule& s) { task_of(s, 0, 0).notify.base = 99; }); }},
      {"negative notify", "L0", "notify", "notify -1;",
       [] { return changed(ring(), [](Schedule& s) { task_of(s, 0, 1).notify.base = -1; }); }},
      {"scratch memory too small", "L0", "range", "bytes 0+128 leave the 64 bytes of the scratch",
       [] { return changed(ring_by_core(), [](Schedule& s) { s.scratch = 64; }); }},
      {"negative scratch slot", "L0", "range", "scratch slot -1",
       [] { return changed(ring_by_core(), [](Schedule& s) { task_of(s, 0, 2).destination.slot.base = -1; }); }},
      {"scratch slots not aligned", "L0", "alignment", "byte 100 is not a multiple of 128",
       [] { return changed(mesh(), [](Schedule& s) { task_of(s, 0, 2).destination.slot_stride = 100; }); }},
      {"sides of different length", "L0", "length", "both sides must be as long",
       [] { return changed(ring(), [](Schedule& s) { task_of(s, 0, 2).destination.cuts[0].count = 2; }); }},
      {"copy onto itself", "L0", "overlap", "source and destination overlap",
       [] {
         return changed(ring(), [](Schedule& s) {
           Task copy = task_of(s, 0, 2);
           copy.kind = TaskKind::copy;
           strand_of(s).loops[0].tasks.push_back(copy);
         });
       }},
      {"write into an input", "L0", "input", "writes into an input",
       [] { return changed(ring(), [](Schedule& s) { task_of(s, 0, 2).destination.buffer = Buffer::input; }); }},
      {"more notifies than the chip has",
       "L0",
       "notifies",
       "needs 4 notifies of every rank; there are 3",
       ring,
       {.notifies = 3}},
      {"more scratch memory than the rank has", "L0", "scratch", "needs 128 bytes", ring_by_core, {.scratch = 127}},
  });
}

TEST(CheckerRefuses, Matching) {
  expect_refused_as({
      {"wait deleted", "L1", "post-without-wait", "notify 1 of rank 0 is posted 3 times and waited for 0 times",
       [] { return changed(ring(), [](Schedule& s) { erase(s, 0, TaskKind::wait, 1); }); }},
      {"post deleted", "L1", "wait-without-post", "notify 0 of rank 0 is posted 0 times and waited for 3 times",
       [] { return changed(ring(), [](Schedule& s) { erase(s, 0, TaskKind::post); }); }},
      {"one round more on one side", "L1", "post-without-wait", "posted 4 times and waited for 3 times",
       [] {
         return by_hand(2, 1, {{0, std::vector<Task>(4, post(rank(1), {0}))}, {1, std::vector<Task>(3, wait({0}))}});
       }},
      {"two queues wait for one notify at the same time", "L1", "two-waiters",
       "rank 0, queue 1, task 0 (wait for notify 0",
       [] {
         return by_hand(2, 1, {{0, {wait({0})}}, {0, {wait({0})}}, {1, {post(rank(0), {0}), post(rank(0), {0})}}},
                        {0, 1, 0});
       }},
      // In the order in which queues are tried here queue 0 takes the first post, and rank 0 goes on only then.
      {"either queue may take the first post", "L1", "two-waiters", "nothing but the posts orders them",
       [] {
         return by_hand(2, 3,
                        {{0, {post(rank(1), {0}), wait({1}), post(rank(1), {0}), wait({1})}},
                         {1, {wait({0}), post(rank(0), {1})}},
                         {1, {wait({0}), post(rank(0), {1})}}},
                        {0, 0, 1});
       }},
      {"posted twice before the wait", "L1", "notify-overwritten", "may come before",
       [] {
         return by_hand(2, 1, {{0, {post(rank(1), {0}), post(rank(1), {0})}}, {1, {wait({0}), wait({0})}}});
       }},
      // In the order in which the ranks are tried here nothing is lost: rank 1 takes the first post while rank 0 waits
      // for rank 2. But nothing makes it.
      {"posted twice before the wait, if rank 1 is slow", "L1", "notify-overwritten",
       "rank 0, queue 0, task 2 (post of notify 0 to rank 1, stage 'by hand') may come before rank 1",
       [] {
         return by_hand(3, 2,
                        {{0, {post(rank(1), {0}), wait({1}), post(rank(1), {0})}},
                         {1, {wait({0}), wait({0})}},
                         {2, {post(rank(0), {1})}}});
       }},
      {"one notify for two purposes", "L1", "notify-overwritten", "post of notify 0",
       [] {
         return changed(ring(), [](Schedule& s) {
           task_of(s, 0, 3).notify.base = 0;
           task_of(s, 0, 4).notify.base = 0;
         });
       }},
  });
}

TEST(CheckerRefuses, Deadlocks) {
  expect_refused_as({
      {"everybody waits first", "L2", "deadlock", "4 queues stop; shortest cycle of 4: rank 0, queue 0, task 0",
       [] { return changed(ring(), [](Schedule& s) { std::swap(task_of(s, 0, 0), task_of(s, 0, 1)); }); }},
      {"two ranks wait for each other, a third for them", "L2", "deadlock", "3 queues stop; shortest cycle of 2",
       [] {
         return by_hand(3, 2,
                        {{0, {wait({0}), post(rank(1), {0}), post(rank(2), {0})}},
                         {1, {wait({0}), post(rank(0), {0})}},
                         {2, {wait({0})}}});
       }},
      {"posted in a stage that is not reached", "L2", "deadlock", "2 queues stop; shortest cycle of 2",
       [] {
         return changed(
             by_hand(2, 2, {{0, {wait({0}), post(rank(1), {1})}}, {1, {wait({1})}}, {1, {post(rank(0), {0})}}}),
             [](Schedule& s) {
               s.stages.push_back({"later", {s.stages[0].strands.back()}});
               s.stages[0].strands.pop_back();
             });
       }},
      {"queues too short", "L2", "deadlock", "is not issued until there is room", mesh, {.queue_depth = 2}},
  });
}

TEST(CheckerRefuses, Races) {
  expect_refused_as({
      {"written before the owner is ready", "L3", "before-start", "rank 0, queue 0, task 1 (write-reduce to rank 1",
       [] { return changed(ring(), [](Schedule& s) { std::swap(task_of(s, 0, 1), task_of(s, 0, 2)); }); }},
      {"written is told before it is", "L3", "race", "in no fixed order",
       [] { return changed(ring(), [](Schedule& s) { std::swap(task_of(s, 0, 2), task_of(s, 0, 3)); }); }},
      {"the owner may have finished", "L3", "after-end", "output 0+128 of rank 1, which may have finished already",
       [] {
         return by_hand(
             2, 1,
             {{1, {post(rank(0), {0})}}, {0, {wait({0}), transfer(TaskKind::write_reduce, rank(1), whole, whole)}}});
       }},
      {"two reductions into the same bytes", "L3", "reduction-order", "output 0+128 of rank 0",
       [] {
         const std::vector<Task> reduce_there{wait({1}), transfer(TaskKind::write_reduce, rank(0), whole, whole),
                                              post(rank(0), {0})};
         std::vector<Task> second = reduce_there;
         second.back().notify.base = 1;
         return by_hand(
             3, 2,
             {{0, {post(rank(1), {1}), post(rank(2), {1}), wait({0}), wait({1})}}, {1, reduce_there}, {2, second}});
       }},
      {"all queues use one scratch slot", "L3", "race", "touch scratch 0+128 of rank",
       [] { return changed(mesh(), [](Schedule& s) { task_of(s, 0, 2).destination.slot.queue = 0; }); }},
  });
}

TEST(CheckerRefuses, Meaning) {
  expect_refused_as({
      {"a round too few", "L4", "contribution", "the contribution of rank",
       [] { return changed(ring(), [](Schedule& s) { strand_of(s).loops[0].rounds.base = 2; }); }},
      {"reduced twice", "L4", "contribution", "2 times",
       [] {
         return changed(ring_by_core(), [](Schedule& s) {
           std::vector<Task>& tasks = strand_of(s).loops[0].tasks;
           tasks.push_back(tasks.back());
         });
       }},
      {"written instead of reduced", "L4", "contribution", "not at all",
       [] { return changed(ring(), [](Schedule& s) { task_of(s, 0, 2).kind = TaskKind::write; }); }},
      {"another slice gathered", "L4", "contribution", "output 0+128 of rank",
       [] {
         return changed(ring(), [](Schedule& s) {
           --task_of(s, 1, 2).source.cuts[0].index.base;
           --task_of(s, 1, 2).destination.cuts[0].index.base;
         });
       }},
      {"reduced into another slice", "L4", "offset", "reduces byte 256 of the payload into byte 384",
       [] { return changed(ring_by_core(), [](Schedule& s) { ++task_of(s, 0, 5).destination.cuts[0].index.base; }); }},
      {"scratch memory read before it is written", "L4", "undefined", "scratch 0+128 of rank 0, which were never",
       [] {
         return changed(ring_by_core(), [](Schedule& s) {
           std::vector<Task>& tasks = strand_of(s).loops[0].tasks;
           std::rotate(tasks.begin(), tasks.end() - 1, tasks.end());
         });
       }},
      {"input is not what output is filled with", "L4", "undefined", "output",
       [] {
         return changed(ring(), [](Schedule& s) {
           s.in_place = false;
           task_of(s, 0, 2).source.buffer = Buffer::input;
         });
       }},
  });
}

TEST(CheckerRefuses, OrderOfReduction) {
  expect_refused_as({
      {"every rank reduces in an order of its own", "L5", "ranks-differ", "different orders",
       [] {
         return changed(mesh_one_shot_allreduce({4, elements}, true), [](Schedule& s) {
           Loop loop{.rounds = {3}};
           loop.tasks = {reduce(scratch({}, {0, 0, 1, 0}, elements * 4), output({}), false)};
           strand_of(s, 1).loops = {loop};
         });
       }},
      {"not the recorded order", "L5", "order-changed", "recorded is 0000000000000001", ring, {.recorded_order = 1}},
  });
}

}  // namespace
}  // namespace hcclsim::hccl
