#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "hccl/check/check.hpp"
#include "hccl/collective/staging.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/conflict_order.hpp"
#include "tests/support/collectives/mutation.hpp"
#include "tests/support/collectives/two_queues.hpp"
#include "tests/support/training/program_interpreter.hpp"

/// The checker against schedules with one random defect each, of every algorithm of every collective. A mutant is
/// killed if the checker, which knows the order of reduction of the original, refuses it. One that passes must be
/// equivalent: the same order of conflicting accesses, the same order of reduction, and right results in 100 random
/// runs; on two and three ranks in all runs that there are.
namespace hcclsim::hccl {
namespace {

constexpr int runs_of_a_survivor = 100;
constexpr Rank most_ranks_of_all_runs = 3;
constexpr std::size_t most_states = 4'000'000;

struct Tally {
  int mutants = 0;
  std::map<std::string, int> killed;  // by level
  int equivalent = 0;
};

using Tallies = std::array<Tally, test::mutations>;

struct Original {
  Schedule schedule;
  TaskProgram program;
  test::Trial trial;
  std::uint64_t order = 0;
  std::uint64_t conflicts = 0;
};

/// Depends on what is mutated and on nothing else, so that a new algorithm changes no other's mutants.
std::uint64_t seed_of(const test::CollectiveAlgorithm& algorithm, Rank ranks) {
  std::uint64_t seed = 0xcbf29ce484222325U;
  for (const char letter : fmt::format("{} {} {}", name_of(algorithm.collective), algorithm.name, ranks)) {
    seed = (seed ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return seed;
}

/// An algorithm as it is, in graph mode out of place, or in op mode in two windows. Slices of a few elements; the last
/// ones are short or empty.
Schedule schedule_of(const test::CollectiveAlgorithm& algorithm, Rank ranks, std::uint64_t form) {
  const bool has_blocks = test::operation_of(algorithm, ranks, 1).blocks() > 1;
  Operation operation = test::operation_of(algorithm, ranks, has_blocks ? 5 : 3 * ranks + 1);
  operation.alignment = 4;
  if (is_rooted(operation.collective)) operation.root = ranks / 2;
  if (form == 0 || operation.collective == Collective::barrier) return algorithm.build(operation);
  if (form == 1) {
    operation.in_place = false;
    return staged(operation, {LaunchMode::graph}, algorithm.build);
  }
  operation.elements = 48;
  // More than half of what one window takes: ccl, and scratch memory of up to the payload for every rank.
  return staged(operation, {LaunchMode::op, Bytes{128} * operation.blocks()}, algorithm.build);
}

Original original_of(Schedule schedule) {
  Findings findings(1);
  TaskProgram program = unroll(schedule, findings);
  const CheckReport report = check(program);
  EXPECT_TRUE(report.ok) << test::text_of(report);
  test::Trial trial(program);
  const std::uint64_t conflicts = test::conflict_order(program, trial.input());
  return {std::move(schedule), std::move(program), std::move(trial), report.order->signature, conflicts};
}

void examine(const Original& original, const test::Mutant& mutant, Tally& tally) {
  ++tally.mutants;
  if (!mutant.unrolls) {
    ++tally.killed["L0"];
    return;
  }
  const CheckReport report = check(mutant.program, {.recorded_order = original.order, .most_findings = 1});
  for (const LevelReport& level : report.levels) {
    if (level.ok) continue;
    ++tally.killed[level.level];
    return;
  }
  ++tally.equivalent;
  ASSERT_EQ(test::conflict_order(mutant.program, original.trial.input()), original.conflicts)
      << "survives, but is not equivalent";
  if (original.program.ranks <= most_ranks_of_all_runs) {
    ASSERT_TRUE(original.trial.succeeds_in_every_order(mutant.program, most_states)) << "survives, but goes wrong";
  }
  for (int seed = 0; seed < runs_of_a_survivor; ++seed) {
    ASSERT_TRUE(original.trial.succeeds(mutant.program, static_cast<std::uint64_t>(seed)))
        << "survives, but goes wrong";
  }
}

void examine_all(Rank ranks, int mutants_of_each, Tallies& tallies) {
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    if (!algorithm.fits(ranks)) continue;
    std::mt19937_64 random(seed_of(algorithm, ranks));
    const std::uint64_t form = random() % 3;
    SCOPED_TRACE(fmt::format("{} {}, {} ranks, form {}", name_of(algorithm.collective), algorithm.name, ranks, form));
    const Original original = original_of(schedule_of(algorithm, ranks, form));
    if (testing::Test::HasFailure()) return;
    const std::size_t first = random();
    for (int i = 0; i < mutants_of_each; ++i) {
      const std::size_t kind = (first + i) % test::mutations;
      const auto mutant = test::mutate(original.schedule, original.program, static_cast<test::Mutation>(kind), random);
      if (!mutant) continue;
      SCOPED_TRACE(fmt::format("mutant {}: {}", i, test::name_of(static_cast<test::Mutation>(kind))));
      examine(original, *mutant, tallies[kind]);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

std::string table_of(const Tallies& tallies) {
  const std::array<std::string, 6> levels{"L0", "L1", "L2", "L3", "L4", "L5"};
  std::string table = "| mutation | mutants |";
  for (const std::string& level : levels) table += fmt::format(" {} |", level);
  table += " equivalent | killed of the others |\n| --- | ---: |";
  for (std::size_t i = 0; i < levels.size() + 2; ++i) table += " ---: |";
  table += "\n";
  Tally all;
  const auto row = [&](std::string_view name, const Tally& tally) {
    table += fmt::format("| {} | {} |", name, tally.mutants);
    int killed = 0;
    for (const std::string& level : levels) {
      const auto found = tally.killed.find(level);
      const int count = found == tally.killed.end() ? 0 : found->second;
      table += fmt::format(" {} |", count);
      killed += count;
    }
    table += fmt::format(" {} | {} % |\n", tally.equivalent, 100 * killed / (tally.mutants - tally.equivalent));
  };
  for (std::size_t kind = 0; kind < test::mutations; ++kind) {
    row(test::name_of(static_cast<test::Mutation>(kind)), tallies[kind]);
    all.mutants += tallies[kind].mutants;
    all.equivalent += tallies[kind].equivalent;
    for (const auto& [level, count] : tallies[kind].killed) all.killed[level] += count;
  }
  row("all", all);
  return table;
}

/// HCCLSIM_UPDATE_GOLDEN=1 writes the table anew; read its diff.
void expect_in_document(const std::string& table) {
  const std::string path = HCCLSIM_DOCS "/checker.md";
  std::stringstream document;
  document << std::ifstream(path).rdbuf();
  if (document.str().find(table) != std::string::npos) return;
  if (std::getenv("HCCLSIM_UPDATE_GOLDEN") == nullptr) {
    FAIL() << "docs/checker.md must show this table (HCCLSIM_UPDATE_GOLDEN=1 puts it there):\n" << table;
  }
  const std::string before = document.str();
  const std::size_t begin = before.find("| mutation |");
  const std::size_t end = before.find('\n', before.find("| all |")) + 1;
  std::ofstream(path) << before.substr(0, begin) << table << before.substr(end);
}

TEST(CheckerMutation, EveryMutantIsKilledOrEquivalent) {
  Tallies tallies;
  const std::map<Rank, int> mutants_of_each{{2, 2},  {3, 2},  {8, 5},  {9, 5}, {16, 5},
                                            {17, 4}, {24, 4}, {32, 3}, {33, 3}};
  for (const auto& [ranks, count] : mutants_of_each) {
    examine_all(ranks, count, tallies);
    if (HasFailure()) return;
  }
  int mutants = 0;
  for (const Tally& tally : tallies) mutants += tally.mutants;
  EXPECT_GE(mutants, 2000);
  expect_in_document(table_of(tallies));
}

/// The same of algorithms whose queues hand every task over to another queue by local notifies.
TEST(CheckerMutation, EveryMutantWithLocalNotifiesIsKilledOrEquivalent) {
  Tallies tallies;
  for (const Rank ranks : {4U, 5U, 8U}) {
    for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
      if (!algorithm.fits(ranks)) continue;
      SCOPED_TRACE(fmt::format("{} {}, {} ranks", name_of(algorithm.collective), algorithm.name, ranks));
      std::mt19937_64 random(seed_of(algorithm, ranks));
      const Original original = original_of(test::on_two_queues(schedule_of(algorithm, ranks, random() % 3)));
      if (HasFailure()) return;
      for (int i = 0; i < 4; ++i) {
        const std::size_t kind = random() % test::mutations;
        const auto mutant =
            test::mutate(original.schedule, original.program, static_cast<test::Mutation>(kind), random);
        if (!mutant) continue;
        SCOPED_TRACE(fmt::format("mutant {}: {}", i, test::name_of(static_cast<test::Mutation>(kind))));
        examine(original, *mutant, tallies[kind]);
        if (HasFatalFailure()) return;
      }
    }
  }
  int killed = 0;
  for (const Tally& tally : tallies) killed += tally.mutants - tally.equivalent;
  EXPECT_GE(killed, 500);
}

}  // namespace
}  // namespace hcclsim::hccl
