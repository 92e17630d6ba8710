#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hccl/check/check.hpp"
#include "hccl/check/symmetry.hpp"
#include "hccl/collective/halving_doubling.hpp"
#include "hccl/collective/mesh.hpp"
#include "hccl/collective/ring.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/schedule/difference.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collective_algorithms.hpp"
#include "tests/support/mutation.hpp"

/// One rank in place of all says the same as all ranks.
namespace hcclsim::hccl {
namespace {

using test::text_of;

constexpr CheckOptions by_rotation{.rotation_from = 2};
constexpr CheckOptions rank_by_rank{.rotation_from = ~Rank{0}};

/// What both reports say, but for the words; with races, the levels up to L3.
std::string essence(const CheckReport& report) {
  std::string text = report.ok ? "ok" : "refused";
  for (const LevelReport& level : report.levels) {
    text += fmt::format(" {}{}", level.level, level.ok ? "" : "!");
    if (!level.ok && level.level == "L3") return text;
  }
  if (report.order) {
    text += fmt::format(" alike {} additions {} bound {} signature {:016x}", report.order->same_on_all_ranks,
                        report.order->additions, report.order->error_bound, report.order->signature);
  }
  if (report.distances) {
    const Distances& found = *report.distances;
    text += fmt::format(" steps {}/{} sent {}/{} reduced {}/{}", found.steps, found.least_steps, found.sent,
                        found.least_sent, found.reduced, found.least_reduced);
  }
  return text;
}

struct Tally {
  std::size_t compared = 0;
  std::size_t refused = 0;
};

/// Compares both ways if the schedule rotates.
void compare(const Schedule& schedule, const std::string& name, Tally& tally) {
  if (!Rotation::of(schedule)) return;
  const CheckReport one = check(schedule, by_rotation);
  const CheckReport all = check(schedule, rank_by_rank);
  ++tally.compared;
  if (!all.ok) ++tally.refused;
  ASSERT_EQ(essence(one), essence(all)) << name << "\nby rotation: " << text_of(one)
                                        << "\nrank by rank: " << text_of(all);
}

/// All algorithms, on the work memory and called one by one through a communicator's buffer of a few windows; payloads
/// and windows divide by the ranks.
template <typename Visit>
void for_each_schedule(const std::vector<Rank>& rank_counts, const Visit& visit) {
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : rank_counts) {
      if (!algorithm.fits(ranks)) continue;
      const Operation operation = test::operation_of(algorithm, ranks, std::uint64_t{ranks} * 96);
      const Schedule schedule = algorithm.build(operation);
      const std::string name = fmt::format("{} {}", name_of(algorithm.collective), algorithm.name);
      visit(schedule, name);
      const Bytes all = operation.payload();
      if (schedule.scratch > all / 3 || algorithm.collective == Collective::barrier) continue;
      visit(staged(operation, {LaunchMode::op, all / 3}, algorithm.build), name + ", op");
    }
  }
}

TEST(CheckerSymmetry, OneRankSaysTheSameAsAllOfRightSchedules) {
  std::map<std::string, Tally> tallies;
  for_each_schedule({2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 33}, [&](const Schedule& schedule, const std::string& name) {
    compare(schedule, fmt::format("{}, {} ranks", name, schedule.ranks), tallies[name]);
  });
  for (const auto& [name, tally] : tallies) EXPECT_EQ(tally.refused, 0U) << name;
  EXPECT_EQ(tallies["allreduce ring"].compared, 11U);
  EXPECT_EQ(tallies["allreduce ring, op"].compared, 11U);
  EXPECT_EQ(tallies["allreduce two-shot"].compared, 11U);
  EXPECT_EQ(tallies["allreduce halving-doubling"].compared, 0U);
}

TEST(CheckerSymmetry, OneRankSaysTheSameAsAllOfWrongSchedules) {
  std::mt19937_64 random(4);
  Tally tally;
  std::map<std::string, std::size_t> kinds;
  for_each_schedule({2, 3, 4, 6, 9, 16}, [&](const Schedule& schedule, const std::string& name) {
    if (!Rotation::of(schedule)) return;
    for (std::size_t kind = 0; kind < test::mutations; ++kind) {
      for (int repetition = 0; repetition < 6; ++repetition) {
        const auto mutation = static_cast<test::Mutation>(kind);
        const std::optional<Schedule> mutant = test::mutate_closed_form(schedule, mutation, random);
        if (!mutant) continue;
        const std::size_t before = tally.refused;
        compare(*mutant, fmt::format("{}, {} ranks: {}", name, schedule.ranks, name_of(mutation)), tally);
        if (tally.refused > before) ++kinds[std::string(name_of(mutation))];
      }
    }
  });
  // Closed forms have no place for the one kind; every other one is refused again and again.
  EXPECT_EQ(kinds.size(), test::mutations - 1);
  for (const auto& [kind, count] : kinds) EXPECT_GT(count, 50U) << kind;
  EXPECT_GT(tally.compared, 3000U);
}

TEST(CheckerSymmetry, OneRankDecidesWhetherSchedulesDiffer) {
  std::mt19937_64 random(6);
  std::size_t equal = 0;
  std::size_t different = 0;
  for_each_schedule({2, 3, 4, 9}, [&](const Schedule& schedule, const std::string& name) {
    for (std::size_t kind = 0; kind < test::mutations; ++kind) {
      const auto mutation = static_cast<test::Mutation>(kind);
      const std::optional<Schedule> mutant = test::mutate_closed_form(schedule, mutation, random);
      if (!mutant || !rotate_alike(schedule, *mutant) || !check(*mutant, {.last_level = 0}).ok) continue;
      const bool all = difference(schedule, *mutant).equal();
      EXPECT_EQ(difference(schedule, *mutant, most_compared_tasks, 1).equal(), all) << name << name_of(mutation);
      ++(all ? equal : different);
    }
  });
  EXPECT_GT(equal, 5U);
  EXPECT_GT(different, 100U);
}

/// A loop in two: the later rounds are those of the second one.
void split_loop(Schedule& schedule, std::size_t number, std::int32_t at) {
  std::vector<Loop>& loops = schedule.stages[0].strands[0].loops;
  Loop later = loops.at(number);
  loops[number].rounds.base = at;
  later.rounds.base -= at;
  for (Task& task : later.tasks) {
    for (Range* range : {&task.source, &task.destination}) {
      for (Cut& cut : range->cuts) cut.index.base += at * cut.index.round;
    }
  }
  loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(number) + 1, later);
}

TEST(CheckerSymmetry, ALargeRingWrittenOtherwiseIsTheSame) {
  const Schedule ring = ring_allreduce({16384, 16384 * 64}, true);
  Schedule other = ring;
  split_loop(other, 0, 10'000);
  ASSERT_TRUE(rotate_alike(ring, other));
  const ScheduleDifference same = difference(ring, other, most_compared_tasks, 1);
  EXPECT_TRUE(same.equal() && same.shown_for_all);
  EXPECT_EQ(same.compared_ranks, 1U);
  // Another payload is turned in other steps.
  EXPECT_FALSE(rotate_alike(ring, ring_allreduce({16384, 16384 * 32}, true)));
  EXPECT_FALSE(rotate_alike(ring, halving_doubling_allreduce({16384, 16384 * 64}, true)));
}

TEST(CheckerSymmetry, RingOn16384Ranks) {
  const CheckReport report = check(ring_allreduce({16384, 16384 * 64}, true));
  EXPECT_TRUE(report.ok) << text_of(report);
  ASSERT_TRUE(report.distances && report.order);
  EXPECT_EQ(report.distances->steps, 2U * 16383);
  EXPECT_EQ(report.distances->sent, report.distances->least_sent);
  EXPECT_EQ(report.order->additions, 16383U);
}

}  // namespace
}  // namespace hcclsim::hccl
