#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hccl/check/check.hpp"
#include "hccl/collective/algorithm/builder.hpp"
#include "hccl/collective/staging.hpp"
#include "tests/support/collectives/direct_collective.hpp"
#include "tests/support/refused.hpp"

/// Wrong schedules of all collectives, written by hand with one defect each: each is refused at the right level, with
/// the right kind of finding, and the message names the ranks and bytes.
namespace hcclsim::hccl {
namespace {

using test::DirectCollective;

/// Four ranks, blocks of 128 bytes.
Operation four(Collective collective, bool in_place = true) {
  return {.ranks = 4, .elements = 32, .collective = collective, .in_place = in_place};
}

TaskProgram program_of(const Schedule& schedule) {
  Findings findings(1);
  TaskProgram program = unroll(schedule, findings);
  EXPECT_TRUE(findings.empty());
  return program;
}

/// The plain schedule of an operation, with a defect.
TaskProgram direct(const Operation& operation, const std::function<void(DirectCollective&)>& spoil) {
  DirectCollective made(operation);
  EXPECT_TRUE(check(made.schedule(), {.same_bits = false}).ok);
  spoil(made);
  return program_of(made.schedule());
}

/// The schedule of a collective with root 1, taken for that with root 0.
TaskProgram with_root_1(Collective collective) {
  Operation operation = four(collective);
  operation.root = 1;
  Schedule schedule = DirectCollective(operation).schedule();
  schedule.root = 0;
  return program_of(schedule);
}

struct Wrong {
  const char* name;
  const char* level;
  const char* kind;
  const char* message;
  TaskProgram program;
};

void expect_refused(const std::vector<Wrong>& programs) {
  for (const Wrong& wrong : programs)
    test::expect_refused(check(wrong.program), {wrong.name, wrong.level, wrong.kind, wrong.message});
}

TEST(CheckerRefuses, CollectivesOfTheWrongRoot) {
  expect_refused({
      {"broadcast", "L4", "undefined", "reads output 0+128 of rank 1, which were never written",
       with_root_1(Collective::broadcast)},
      {"reduce", "L4", "contribution",
       "output 0+128 of rank 0 hold the contribution of rank 1 not at all, the contribution of rank 2 not at all",
       with_root_1(Collective::reduce)},
      {"scatter", "L4", "undefined", "which were never written", with_root_1(Collective::scatter)},
      {"gather", "L4", "contribution", "output 128+128 of rank 0 hold nothing", with_root_1(Collective::gather)},
      {"scattered by one that is not the root", "L0", "range", "leave the 0 bytes of the input",
       direct(four(Collective::scatter, false),
              [](DirectCollective& made) { made.rank(1).reads[0].peer = DirectCollective::peer(2); })},
  });
}

TEST(CheckerRefuses, BlocksInTheWrongPlace) {
  expect_refused({
      {"a neighbour's block scattered", "L4", "contribution",
       "output 256+128 of rank 2 hold bytes 384+128 of the contribution of rank 0, not 256+128",
       direct(four(Collective::scatter),
              [](DirectCollective& made) { made.rank(2).reads[0].source = made.block(Buffer::output, 3); })},
      {"two blocks gathered in each other's place", "L4", "contribution",
       "output 0+128 of rank 1 hold the contribution of rank 0 not at all, the contribution of rank 2 1 times",
       direct(four(Collective::allgather),
              [](DirectCollective& made) {
                std::swap(made.rank(1).reads[0].destination, made.rank(1).reads[1].destination);
              })},
      {"a block never gathered", "L4", "contribution", "output 256+128 of rank 3 hold nothing",
       direct(four(Collective::allgather), [](DirectCollective& made) { made.rank(3).reads.pop_back(); })},
      {"gathered over another's block", "L4", "contribution",
       "output 128+128 of rank 0 hold the contribution of rank 1 not at all, the contribution of rank 2 1 times",
       direct(four(Collective::gather),
              [](DirectCollective& made) { made.rank(0).reads[1].destination = made.block(Buffer::output, 1); })},
      {"another rank's block of an alltoall", "L4", "contribution",
       "output 0+128 of rank 2 hold bytes 128+128 of the contribution of rank 0, not 256+128",
       direct(four(Collective::alltoall, false),
              [](DirectCollective& made) { made.rank(2).reads[0].source = made.block(Buffer::input, 1); })},
      {"alltoall without the own block", "L4", "contribution", "output 384+128 of rank 3 hold nothing",
       direct(four(Collective::alltoall, false), [](DirectCollective& made) { made.rank(3).own.clear(); })},
      {"received from the next instead of the one before", "L4", "contribution",
       "output 0+128 of rank 0 hold the contribution of rank 1 1 times, the contribution of rank 3 not at all",
       direct(four(Collective::send_recv, false),
              [](DirectCollective& made) { made.rank(0).reads[0].peer = DirectCollective::peer(1); })},
  });
}

TEST(CheckerRefuses, ReductionsOfBlocks) {
  expect_refused({
      {"a contribution twice", "L4", "contribution", "output 128+128 of rank 1 hold the contribution of rank 3 2 times",
       direct(four(Collective::reduce_scatter),
              [](DirectCollective& made) { made.rank(1).reads.push_back(made.rank(1).reads.back()); })},
      {"a contribution never", "L4", "contribution",
       "output 0+128 of rank 1 hold the contribution of rank 0 not at all",
       direct(four(Collective::reduce_scatter, false),
              [](DirectCollective& made) { made.rank(1).reads.erase(made.rank(1).reads.begin()); })},
      {"another block", "L4", "offset", "reduces byte 256 of the payload into byte 128",
       direct(four(Collective::reduce_scatter),
              [](DirectCollective& made) { made.rank(1).reads[2].source = made.block(Buffer::output, 2); })},
      {"read instead of reduced", "L4", "contribution", "output 0+128 of rank 0 hold the contribution of rank 0 not at",
       direct(four(Collective::reduce), [](DirectCollective& made) { made.rank(0).reads[0].kind = TaskKind::read; })},
  });
}

TEST(CheckerRefuses, CountsOffByOne) {
  Operation operation{.ranks = 3, .alignment = 4, .collective = Collective::alltoall, .in_place = false};
  operation.counts = BlockCounts::of_pairs(3, {0, 1, 2, 1, 2, 3, 2, 3, 4});
  const TaskProgram right = direct(operation, [](DirectCollective&) {});
  // Rank 2 sends 2 elements to rank 0, from its first on.
  const auto changed = [&](const std::function<void(Movement&)>& change) {
    TaskProgram program = right;
    for (Movement& movement : program.movements) {
      if (movement.source.length == 8 && movement.source.offset == 0 && movement.destination.offset == 4) {
        change(movement);
        return program;
      }
    }
    ADD_FAILURE() << "no such movement";
    return program;
  };
  expect_refused({
      {"one too few", "L4", "contribution", "output 8+4 of rank 0 hold nothing", changed([](Movement& movement) {
         movement.source.length -= 4;
         movement.destination.length -= 4;
       })},
      {"one too many", "L0", "range", "bytes 4+12 leave the 12 bytes of the output", changed([](Movement& movement) {
         movement.source.length += 4;
         movement.destination.length += 4;
       })},
      {"from one further on", "L4", "contribution",
       "output 4+8 of rank 0 hold bytes 4+8 of the contribution of rank 2, not 0+8",
       changed([](Movement& movement) { movement.source.offset += 4; })},
  });
}

TEST(CheckerRefuses, BarriersThatLetOneGoEarly) {
  const auto one_phase = [](const std::function<void(DirectCollective&)>& spoil) {
    return direct(four(Collective::barrier), [&](DirectCollective& made) {
      for (Rank rank = 0; rank < 4; ++rank) {
        made.rank(rank).read_posts.clear();
        made.rank(rank).read_waits.clear();
      }
      spoil(made);
    });
  };
  EXPECT_TRUE(check(one_phase([](DirectCollective&) {})).ok);
  expect_refused({
      {"one does not wait for the last", "L4", "barrier", "rank 0 may end before rank 3 has begun",
       one_phase([](DirectCollective& made) {
         made.rank(0).ready_waits.pop_back();
         made.rank(3).ready_posts.erase(made.rank(3).ready_posts.begin());
       })},
      {"the first lets all go before the last has come", "L4", "barrier", "rank 1 may end before rank 3 has begun",
       one_phase([](DirectCollective& made) {
         std::vector<Task> releases = std::move(made.rank(0).ready_posts);
         std::vector<Task>& waits = made.rank(0).ready_waits;
         waits.insert(waits.end() - 1, releases.begin(), releases.end());
         made.rank(0).ready_posts.clear();
         for (Rank rank = 1; rank < 4; ++rank) {
           made.rank(rank).ready_posts.resize(1);
           made.rank(rank).ready_waits.resize(1);
         }
       })},
      {"nobody waits for anybody", "L4", "barrier", "rank 0 may end before rank 1 and 2 others have begun",
       one_phase([](DirectCollective& made) {
         for (Rank rank = 0; rank < 4; ++rank) made.rank(rank) = {};
       })},
  });
}

TEST(CheckerRefuses, MemoryOfOthersAtTheWrongTime) {
  // All read from the outputs of the others, into which these have copied their blocks.
  const auto from_outputs = [](DirectCollective& made) {
    for (Rank rank = 0; rank < 4; ++rank) {
      for (Task& read : made.rank(rank).reads) read.source = read.destination;
    }
  };
  expect_refused({
      {"the root may have left before all have read", "L3", "after-end",
       "output 0+128 of rank 0, which may have finished already",
       direct(four(Collective::broadcast),
              [](DirectCollective& made) {
                made.rank(0).read_waits.pop_back();
                made.rank(3).read_posts.erase(made.rank(3).read_posts.begin());
              })},
      {"read before its owner has copied it", "L3", "race", "output 256+128 of rank 2 in no fixed order",
       direct(four(Collective::allgather, false),
              [&](DirectCollective& made) {
                from_outputs(made);
                made.rank(2).read_posts.insert(made.rank(2).read_posts.begin(), made.rank(2).own[0]);
                made.rank(2).own.clear();
              })},
  });
}

/// A broadcast in op mode, in two windows.
TEST(CheckerRefuses, WindowsOfTheCommunicatorsBuffer) {
  Operation operation = four(Collective::broadcast);
  operation.elements = 64;
  const Schedule schedule = staged(operation, {LaunchMode::op, 128},
                                   [](const Operation& window) { return DirectCollective(window).schedule(); });
  ASSERT_EQ(schedule.windows(), 2U);
  const TaskProgram right = program_of(schedule);
  ASSERT_TRUE(check(right).ok) << test::text_of(check(right));
  const auto changed = [&](const std::function<bool(Movement&)>& change) {
    TaskProgram program = right;
    EXPECT_TRUE(std::any_of(program.movements.begin(), program.movements.end(), change));
    return program;
  };
  const auto copies_second = [](const Movement& movement, Buffer from, Buffer to) {
    return movement.source.buffer == from && movement.destination.buffer == to &&
           std::max(movement.source.offset, movement.destination.offset) == 128;
  };
  TaskProgram short_buffer = right;
  short_buffer.ccl = 64;
  expect_refused({
      {"the second window copied out over the first", "L4", "contribution",
       "output 0+128 of rank 1 hold bytes 128+128 of the contribution of rank 0, not 0+128",
       changed([&](Movement& movement) {
         if (!copies_second(movement, Buffer::ccl, Buffer::output)) return false;
         movement.destination.offset = 0;
         return true;
       })},
      {"the first window copied in again", "L4", "contribution",
       "output 128+128 of rank 1 hold bytes 0+128 of the contribution of rank 0, not 128+128",
       changed([&](Movement& movement) {
         if (!copies_second(movement, Buffer::output, Buffer::ccl)) return false;
         movement.source.offset = 0;
         return true;
       })},
      {"a buffer shorter than its window", "L0", "range", "leave the 64 bytes of the ccl", std::move(short_buffer)},
  });
}

}  // namespace
}  // namespace hcclsim::hccl
