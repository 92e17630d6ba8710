#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "hccl/check/check.hpp"
#include "tests/support/allreduce_algorithms.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/conflict_order.hpp"
#include "tests/support/mutation.hpp"
#include "tests/support/program_interpreter.hpp"

/// The checker against schedules with one random defect each. A mutant is killed if the checker, which knows the order
/// of reduction of the original, refuses it. One that passes must be equivalent: the same order of conflicting
/// accesses, the same order of reduction, and the right sums in 100 random runs.
namespace hcclsim::hccl {
namespace {

constexpr int runs_of_a_survivor = 100;

struct Tally {
  int mutants = 0;
  std::map<std::string, int> killed;  // by level
  int equivalent = 0;
};

using Tallies = std::array<Tally, test::mutations>;

struct Original {
  Schedule schedule;
  TaskProgram program;
  test::Trial trial{{}};
  std::uint64_t order = 0;
  std::uint64_t conflicts = 0;
};

Original original_of(const test::AllReduce& algorithm, Rank ranks) {
  Original original;
  // Slices of a few elements; the last ones are short or empty.
  original.schedule = algorithm.build({ranks, 3 * ranks + 1, DataType::fp32, ReduceOp::sum, 4});
  Findings findings(1);
  original.program = unroll(original.schedule, findings);
  const CheckReport report = check(original.program);
  EXPECT_TRUE(report.ok) << test::text_of(report);
  original.order = report.order->signature;
  original.trial = test::Trial(original.program);
  original.conflicts = test::conflict_order(original.program);
  return original;
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
  ASSERT_EQ(test::conflict_order(mutant.program), original.conflicts) << "survives, but is not equivalent";
  for (int seed = 0; seed < runs_of_a_survivor; ++seed) {
    ASSERT_TRUE(original.trial.succeeds(mutant.program, static_cast<std::uint64_t>(seed)))
        << "survives, but goes wrong";
  }
}

void examine_all(Rank ranks, int mutants_of_each, Tallies& tallies) {
  std::mt19937_64 random(ranks);
  for (const auto& [name, algorithm] : test::allreduce_algorithms()) {
    if (!algorithm.fits(ranks)) continue;
    const Original original = original_of(algorithm, ranks);
    for (int i = 0; i < mutants_of_each; ++i) {
      const std::size_t kind = random() % test::mutations;
      const auto mutant = test::mutate(original.schedule, original.program, static_cast<test::Mutation>(kind), random);
      if (!mutant) continue;
      SCOPED_TRACE(
          fmt::format("{}, {} ranks, mutant {}: {}", name, ranks, i, test::name_of(static_cast<test::Mutation>(kind))));
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

TEST(CheckerMutation, EveryMutantIsKilledOrEquivalent) {
  Tallies tallies;
  const std::map<Rank, int> mutants_of_each{{8, 10}, {9, 16}, {16, 8}, {17, 20}, {24, 6}, {32, 5}, {33, 8}};
  for (const auto& [ranks, count] : mutants_of_each) {
    examine_all(ranks, count, tallies);
    if (HasFatalFailure()) return;
  }
  const std::string table = table_of(tallies);
  int mutants = 0;
  for (const Tally& tally : tallies) mutants += tally.mutants;
  EXPECT_GE(mutants, 2000);

  std::ifstream file(HCCLSIM_DOCS "/checker.md");
  std::stringstream document;
  document << file.rdbuf();
  EXPECT_NE(document.str().find(table), std::string::npos) << "docs/checker.md must show this table:\n" << table;
}

}  // namespace
}  // namespace hcclsim::hccl
