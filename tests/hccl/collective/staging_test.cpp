#include "hccl/collective/staging.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/check/check.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/schedule/walk.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/collective_result.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// Every algorithm, staged in every form, leaves what the operation asks for; forms and copies of single ones by hand.
namespace hcclsim::hccl {
namespace {

/// Of windows by hand: 128-byte slices, fp32.
constexpr std::uint64_t unit = 32;

Operation form_of(const test::CollectiveAlgorithm& algorithm, Rank ranks, std::uint64_t elements, bool in_place) {
  Operation operation = test::operation_of(algorithm, ranks, elements);
  operation.in_place = in_place;
  if (is_rooted(operation.collective)) operation.root = (elements + 1) % ranks;
  return operation;
}

/// Buffers of the communicator: one that never binds, and some that ask for windows. Mesh algorithms need scratch
/// memory of the payload's size for every rank.
std::vector<Staging> stagings(Rank ranks) {
  const Bytes least = Bytes{128} * ranks;
  return {{LaunchMode::graph}, {LaunchMode::op}, {LaunchMode::op, 2 * least}, {LaunchMode::op, 5 * least + 1000}};
}

std::string problem(const Schedule& schedule, const Staging& staging, std::uint64_t seed) {
  if (staging.launch == LaunchMode::op &&
      (schedule.ccl > staging.buffer_bytes || schedule.scratch > staging.buffer_bytes)) {
    return fmt::format("ccl {} and scratch {} of {} bytes", schedule.ccl, schedule.scratch, staging.buffer_bytes);
  }
  const CheckReport proof = check(schedule);
  if (!proof.ok) return test::text_of(proof);
  const std::vector<test::Values> input = test::make_input(schedule, seed);
  const test::Execution run = test::execute(schedule, input, seed);
  return test::problem_of_result(schedule, input, run.output);
}

TEST(Staging, EveryFormOfEveryAlgorithmLeavesWhatTheOperationAsksFor) {
  std::uint64_t seed = 1;
  std::uint32_t most_windows = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (Rank ranks = 1; ranks <= 9; ++ranks) {
      if (!algorithm.fits(ranks)) continue;
      for (const Staging& staging : stagings(ranks)) {
        for (const std::uint64_t elements : {0U, 1U, 31U, 389U}) {
          for (const bool in_place : {true, false}) {
            if (in_place && algorithm.collective == Collective::send_recv) continue;
            const Operation operation = form_of(algorithm, ranks, elements, in_place);
            const Schedule schedule = staged(operation, staging, algorithm.build);
            ASSERT_EQ(problem(schedule, staging, ++seed), "")
                << name_of(operation.collective) << ' ' << algorithm.name << ": " << ranks << " ranks, " << elements
                << " elements, " << name_of(staging.launch) << ", buffer " << staging.buffer_bytes << ", in place "
                << in_place << ", window " << schedule.window;
            most_windows = std::max(most_windows, schedule.windows());
          }
        }
      }
    }
  }
  EXPECT_GE(most_windows, 7U);
}

/// "copy in: output[…] -> ccl[…] by 0,1" for every stage of copies alone.
std::vector<std::string> copies(const Schedule& schedule, Rank rank) {
  std::vector<std::string> all;
  QueueWalk walk;
  Movements movements;
  for (std::uint32_t stage = 0; stage < schedule.stage_count(); ++stage) {
    if (!walk.enter(schedule, stage, rank, 0)) continue;
    for (; walk.task() != nullptr; walk.next()) {
      if (walk.task()->kind != TaskKind::copy) continue;
      walk.movements(schedule, rank, movements);
      for (const Movement& movement : movements) {
        const auto text = [](const ByteRange& range) {
          return fmt::format("{}+{}", name_of(range.buffer), range.offset);
        };
        all.push_back(
            fmt::format("{} -> {} {} B", text(movement.source), text(movement.destination), movement.source.length));
      }
    }
  }
  return all;
}

/// An algorithm that has no stages: what is left are the copies.
Schedule nothing(const Operation& operation) { return Builder(operation, "nothing").finish(); }

Operation operation_on_three(Collective collective, bool in_place) {
  return {.ranks = 3, .elements = 64, .collective = collective, .root = 1, .in_place = in_place};
}

std::vector<std::string> copies(Collective collective, LaunchMode launch, bool in_place, Rank rank) {
  return copies(staged(operation_on_three(collective, in_place), {launch}, nothing), rank);
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Staging, GraphModeCopiesOnlyOutOfPlace) {
  for (const Collective collective :
       {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast,
        Collective::reduce, Collective::scatter, Collective::gather, Collective::barrier}) {
    EXPECT_THAT(copies(collective, LaunchMode::graph, true, 1), IsEmpty()) << name_of(collective);
  }
  const auto of = [](Collective collective, Rank rank) { return copies(collective, LaunchMode::graph, false, rank); };
  EXPECT_THAT(of(Collective::allreduce, 2), ElementsAre("input+0 -> output+0 256 B"));
  EXPECT_THAT(of(Collective::allgather, 2), ElementsAre("input+0 -> output+512 256 B"));
  EXPECT_THAT(of(Collective::broadcast, 1), ElementsAre("input+0 -> output+0 256 B"));
  EXPECT_THAT(of(Collective::broadcast, 2), IsEmpty());
  EXPECT_THAT(of(Collective::reduce_scatter, 2), ElementsAre("input+0 -> ccl+0 768 B", "ccl+512 -> output+0 256 B"));
  EXPECT_THAT(of(Collective::scatter, 2), ElementsAre("ccl+512 -> output+0 256 B"));
}

TEST(Staging, OpModeGoesThroughTheCommunicatorsBuffer) {
  const auto in_place = [](Collective collective, Rank rank) { return copies(collective, LaunchMode::op, true, rank); };
  EXPECT_THAT(in_place(Collective::allreduce, 2), ElementsAre("output+0 -> ccl+0 256 B", "ccl+0 -> output+0 256 B"));
  EXPECT_THAT(in_place(Collective::reduce_scatter, 2),
              ElementsAre("output+0 -> ccl+0 768 B", "ccl+512 -> output+512 256 B"));
  EXPECT_THAT(in_place(Collective::allgather, 2),
              ElementsAre("output+512 -> ccl+512 256 B", "ccl+0 -> output+0 768 B"));
  EXPECT_THAT(in_place(Collective::broadcast, 1), ElementsAre("output+0 -> ccl+0 256 B"));
  EXPECT_THAT(in_place(Collective::broadcast, 2), ElementsAre("ccl+0 -> output+0 256 B"));
  EXPECT_THAT(in_place(Collective::reduce, 1), ElementsAre("output+0 -> ccl+0 256 B", "ccl+0 -> output+0 256 B"));
  EXPECT_THAT(in_place(Collective::reduce, 2), ElementsAre("output+0 -> ccl+0 256 B"));
  EXPECT_THAT(in_place(Collective::scatter, 1), ElementsAre("output+0 -> ccl+0 768 B"));
  EXPECT_THAT(in_place(Collective::scatter, 2), ElementsAre("ccl+512 -> output+512 256 B"));
  EXPECT_THAT(in_place(Collective::gather, 1), ElementsAre("output+256 -> ccl+256 256 B", "ccl+0 -> output+0 768 B"));
  EXPECT_THAT(in_place(Collective::gather, 2), ElementsAre("output+512 -> ccl+512 256 B"));
  EXPECT_THAT(in_place(Collective::alltoall, 2), ElementsAre("output+0 -> ccl+0 768 B"));
  EXPECT_THAT(in_place(Collective::barrier, 2), IsEmpty());

  const auto out = [](Collective collective, Rank rank) { return copies(collective, LaunchMode::op, false, rank); };
  EXPECT_THAT(out(Collective::broadcast, 1), ElementsAre("input+0 -> ccl+0 256 B", "ccl+0 -> output+0 256 B"));
  EXPECT_THAT(out(Collective::scatter, 1), ElementsAre("input+0 -> ccl+0 768 B", "ccl+256 -> output+0 256 B"));
  EXPECT_THAT(out(Collective::gather, 2), ElementsAre("input+0 -> ccl+512 256 B"));
  EXPECT_THAT(out(Collective::alltoall, 2), ElementsAre("input+0 -> ccl+0 768 B"));
}

TEST(Staging, ABufferThatIsTooSmallIsFilledAgainAndAgain) {
  // Three blocks of 64 elements, a buffer for three of 32: two windows, in which the blocks lie 128 bytes apart.
  const Operation operation = operation_on_three(Collective::reduce_scatter, false);
  const Schedule schedule = staged(operation, {LaunchMode::op, 3 * 128 + 127}, nothing);
  EXPECT_EQ(schedule.window, unit);
  EXPECT_EQ(schedule.windows(), 2U);
  EXPECT_EQ(schedule.ccl, 3U * 128);
  EXPECT_THAT(copies(schedule, 2),
              ElementsAre("input+0 -> ccl+0 128 B", "input+256 -> ccl+128 128 B", "input+512 -> ccl+256 128 B",
                          "ccl+256 -> output+0 128 B", "input+128 -> ccl+0 128 B", "input+384 -> ccl+128 128 B",
                          "input+640 -> ccl+256 128 B", "ccl+256 -> output+128 128 B"));
  EXPECT_EQ(staged(operation, {LaunchMode::op, 3 * 256}, nothing).window, 0U);
}

TEST(Staging, ScratchMemoryMustFitIntoASecondBufferOfTheSize) {
  // One-shot: seven payloads of scratch memory. 1 MiB holds seven windows of 149,796 bytes, cut at 128.
  const Operation operation{.ranks = 8, .elements = 1U << 18U};
  const auto build = [](const Operation& one) { return mesh_one_shot_allreduce(one, true); };
  const Schedule schedule = staged(operation, {LaunchMode::op, Bytes{1} << 20U}, build);
  EXPECT_EQ(schedule.window * 4, (Bytes{1} << 20U) / 7 / 128 * 128);
  EXPECT_LE(schedule.scratch, Bytes{1} << 20U);
  EXPECT_EQ(schedule.windows(), 8U);
  // In graph mode nothing binds.
  EXPECT_EQ(staged(operation, {LaunchMode::graph, 1024}, build).windows(), 1U);
}

TEST(Staging, ARankAloneCopies) {
  for (const LaunchMode launch : {LaunchMode::graph, LaunchMode::op}) {
    SCOPED_TRACE(name_of(launch));
    Operation operation{.ranks = 1, .elements = 64, .in_place = false};
    EXPECT_THAT(copies(staged(operation, {launch}, nothing), 0), ElementsAre("input+0 -> output+0 256 B"));
    operation.in_place = true;
    EXPECT_EQ(staged(operation, {launch}, nothing).stage_count(), 0U);
  }
}

TEST(Staging, ABufferWithoutRoomForASliceOfEveryBlockIsRefused) {
  const Operation operation = operation_on_three(Collective::reduce_scatter, true);
  EXPECT_EQ(staged(operation, {LaunchMode::op, 3 * 128}, nothing).windows(), 2U);
  try {
    (void)staged(operation, {LaunchMode::op, 3 * 128 - 1}, nothing);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), testing::HasSubstr("3 ranks need more than a buffer of 383 bytes"));
  }
}

}  // namespace
}  // namespace hcclsim::hccl
