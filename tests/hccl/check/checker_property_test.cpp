#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "hccl/check/check.hpp"
#include "hccl/collective/staging.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/direct_collective.hpp"
#include "tests/support/collectives/executed.hpp"
#include "tests/support/collectives/mutation.hpp"
#include "tests/support/collectives/two_queues.hpp"
#include "tests/support/training/program_interpreter.hpp"

/// The checker says of a program what running it shows: of right ones and, mostly, wrong ones.
namespace hcclsim::hccl {
namespace {

/// In place, out of place, or in op mode through a small buffer.
Schedule form_of(const test::CollectiveAlgorithm& algorithm, Operation operation, std::uint64_t form) {
  if (form == 0) return algorithm.build(operation);
  operation.in_place = false;
  if (form == 1) return staged(operation, {LaunchMode::graph}, algorithm.build);
  // Enough for mesh algorithms, which need scratch memory for every rank, and for a window or a few.
  return staged(operation, {LaunchMode::op, Bytes{512} * operation.ranks}, algorithm.build);
}

/// Passes the levels up to L5 and L7, is not better than the least possible, and leaves on real data what it should.
void expect_right(const Schedule& schedule, std::uint64_t seed) {
  const CheckReport report = check(schedule);
  ASSERT_TRUE(report.ok) << test::text_of(report);
  EXPECT_GE(report.distances->steps, report.distances->least_steps);
  EXPECT_GE(report.distances->sent, report.distances->least_sent);
  EXPECT_GE(report.distances->reduced, report.distances->least_reduced);
  const std::vector<test::Values> input = test::make_input(schedule, seed);
  ASSERT_EQ(test::problem_of_result(schedule, input, test::executed(schedule, input)), "");
}

/// All algorithms that fit; about one in `step` of all sizes and forms, others for every algorithm and rank count.
void expect_all_right(const std::vector<Rank>& rank_counts, std::uint64_t step) {
  constexpr std::array<std::uint64_t, 4> sizes{0, 1, 31, 640};
  constexpr std::uint64_t forms = 3;
  std::uint64_t seed = 0;
  std::uint64_t number = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : rank_counts) {
      if (!algorithm.fits(ranks)) continue;
      for (std::uint64_t which = ++number * 11 % step; which < sizes.size() * forms; which += step) {
        const std::uint64_t elements = sizes[which / forms];
        Operation operation = test::operation_of(algorithm, ranks, elements);
        operation.type = DataType::int64;
        if (is_rooted(operation.collective)) operation.root = static_cast<Rank>(seed % ranks);
        SCOPED_TRACE(fmt::format("{} {}, {} ranks, {} elements, form {}", name_of(algorithm.collective), algorithm.name,
                                 ranks, elements, which % forms));
        expect_right(form_of(algorithm, operation, which % forms), ++seed);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

std::vector<Rank> ranks_from_to(Rank first, Rank last) {
  std::vector<Rank> ranks(last - first + 1);
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

TEST(CheckerProperty, EveryAlgorithmOnUpTo12RanksIsProvedAndExecutes) { expect_all_right(ranks_from_to(1, 12), 1); }
/// On two queues that hand each task over by local notifies every algorithm does what it did before.
TEST(CheckerProperty, EveryAlgorithmIsTheSameOnTwoQueues) {
  std::uint64_t form = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : {1U, 2U, 3U, 8U}) {
      if (!algorithm.fits(ranks)) continue;
      Operation operation = test::operation_of(algorithm, ranks, 31);
      operation.type = DataType::int64;
      if (is_rooted(operation.collective)) operation.root = ranks - 1;
      SCOPED_TRACE(
          fmt::format("{} {}, {} ranks, form {}", name_of(algorithm.collective), algorithm.name, ranks, ++form % 3));
      const Schedule schedule = form_of(algorithm, operation, form % 3);
      const Schedule alternating = test::on_two_queues(schedule);
      expect_right(alternating, form);
      if (HasFatalFailure()) return;
      const CheckReport before = check(schedule);
      const CheckReport after = check(alternating);
      if (before.order) {
        ASSERT_EQ(after.order->signature, before.order->signature);
      }
      ASSERT_EQ(after.distances->steps, before.distances->steps);
      ASSERT_EQ(after.distances->sent, before.distances->sent);
    }
  }
}

TEST(CheckerProperty, EveryAlgorithmOn16And33RanksIsProvedAndExecutes) { expect_all_right({16, 33}, 11); }
TEST(CheckerProperty, EveryAlgorithmOn13To33RanksIsProvedAndExecutesAtLength) {
  expect_all_right(ranks_from_to(13, 33), 11);
}
TEST(CheckerProperty, EveryAlgorithmOn64To128RanksIsProvedAndExecutes) { expect_all_right({64, 100, 128}, 47); }

/// Blocks of any size, some of them empty.
BlockCounts random_counts(const Operation& operation, std::mt19937_64& random) {
  const bool pairs = counts_pairs(operation.collective);
  std::vector<std::uint64_t> counts(pairs ? std::size_t{operation.ranks} * operation.ranks : operation.ranks);
  for (std::uint64_t& count : counts) count = random() % 3 == 0 ? 0 : random() % 300;
  return pairs ? BlockCounts::of_pairs(operation.ranks, std::move(counts)) : BlockCounts::of_blocks(std::move(counts));
}

TEST(CheckerProperty, EveryAlgorithmOfBlocksTakesCounts) {
  std::mt19937_64 random(3);
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    const bool takes_counts = algorithm.collective == Collective::reduce_scatter ||
                              algorithm.collective == Collective::allgather || counts_pairs(algorithm.collective);
    if (!takes_counts || !algorithm.takes_counts) continue;
    for (Rank ranks = 1; ranks <= 17; ++ranks) {
      if (!algorithm.fits(ranks)) continue;
      Operation operation = test::operation_of(algorithm, ranks, 1);
      operation.type = DataType::int64;
      operation.counts = random_counts(operation, random);
      for (std::uint64_t form = 0; form < 3; ++form) {
        SCOPED_TRACE(
            fmt::format("{} {}, {} ranks, form {}", name_of(algorithm.collective), algorithm.name, ranks, form));
        expect_right(form_of(algorithm, operation, form), ranks);
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// What runs of a program can show of what the checker says: it is right in all, or not right in any.
void expect_agreement(const TaskProgram& program, const test::Trial& trial) {
  const CheckReport report = check(program, {.same_bits = false, .most_findings = 1});
  if (report.ok) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      ASSERT_TRUE(trial.succeeds(program, seed)) << "accepted, but goes wrong";
    }
    return;
  }
  // Races need not show, nor posts that nobody waits for.
  const LevelReport& refused =
      *std::find_if(report.levels.begin(), report.levels.end(), [](const LevelReport& level) { return !level.ok; });
  const bool never_right =
      refused.level == "L2" || (refused.level == "L4" && refused.findings.front().kind == "contribution");
  for (std::uint64_t seed = 0; never_right && seed < 20; ++seed) {
    ASSERT_FALSE(trial.succeeds(program, seed)) << "goes right, but is refused: " << test::text_of(report);
  }
}

TEST(CheckerProperty, MutantsOfPlainCollectivesDoWhatTheCheckerSays) {
  std::mt19937_64 random(7);
  int mutants = 0;
  for (int i = 0; i < 3000; ++i) {
    Operation operation{.ranks = static_cast<Rank>(2 + random() % 4),
                        .elements = random() % 4,
                        .alignment = 4,
                        .collective = static_cast<Collective>(random() % 10),
                        .in_place = random() % 2 == 0};
    if (is_rooted(operation.collective)) operation.root = static_cast<Rank>(random() % operation.ranks);
    if (!test::DirectCollective::suits(operation)) continue;
    const Schedule schedule = test::DirectCollective(operation).schedule();
    Findings form(1);
    const TaskProgram program = unroll(schedule, form);
    const auto mutation = static_cast<test::Mutation>(random() % test::mutations);
    const auto mutant = test::mutate(schedule, program, mutation, random);
    if (!mutant || !mutant->unrolls) continue;
    SCOPED_TRACE(fmt::format("{}, {} ranks, {} elements, root {}, in place {}, {}: {}", name_of(operation.collective),
                             operation.ranks, operation.elements, operation.root, operation.in_place, i,
                             test::name_of(mutation)));
    expect_agreement(mutant->program, test::Trial(operation));
    if (HasFatalFailure()) return;
    ++mutants;
  }
  EXPECT_GE(mutants, 1000);
}

}  // namespace
}  // namespace hcclsim::hccl
