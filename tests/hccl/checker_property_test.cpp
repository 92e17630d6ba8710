#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "hccl/check/check.hpp"
#include "hccl/collective/staging.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collective_algorithms.hpp"
#include "tests/support/direct_collective.hpp"
#include "tests/support/executed.hpp"
#include "tests/support/mutation.hpp"
#include "tests/support/program_interpreter.hpp"

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

TEST(CheckerProperty, EveryAlgorithmIsProvedAndExecutes) {
  std::uint64_t seed = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (Rank ranks = 1; ranks <= 12; ++ranks) {
      if (!algorithm.fits(ranks)) continue;
      for (const std::uint64_t elements : {0U, 1U, 31U, 640U}) {
        const std::uint64_t form = ++seed % 3;
        Operation operation = test::operation_of(algorithm, ranks, elements);
        operation.type = DataType::int64;
        if (is_rooted(operation.collective)) operation.root = static_cast<Rank>(seed % ranks);
        const Schedule schedule = form_of(algorithm, operation, form);
        SCOPED_TRACE(fmt::format("{} {}, {} ranks, {} elements, form {}", name_of(algorithm.collective), algorithm.name,
                                 ranks, elements, form));
        const CheckReport report = check(schedule);
        ASSERT_TRUE(report.ok) << test::text_of(report);
        EXPECT_GE(report.distances->steps, report.distances->least_steps);
        EXPECT_GE(report.distances->sent, report.distances->least_sent);
        EXPECT_GE(report.distances->reduced, report.distances->least_reduced);
        const std::vector<test::Values> input = test::make_input(schedule, seed);
        ASSERT_EQ(test::problem_of_result(schedule, input, test::executed(schedule, input)), "");
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
