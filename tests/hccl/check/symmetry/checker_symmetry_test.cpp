#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hccl/check/check.hpp"
#include "hccl/check/symmetry/symmetry.hpp"
#include "hccl/check/symmetry/turns_in_time.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/levels/hierarchical.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/schedule/difference.hpp"
#include "hccl/schedule/walk.hpp"
#include "tests/support/built.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/mutation.hpp"

/// One rank in place of all says the same as all ranks.
namespace hcclsim::hccl {
namespace {

using test::built;
using test::text_of;

const CheckOptions by_rotation{.rotation_from = 2};
const CheckOptions rank_by_rank{.rotation_from = ~Rank{0}};

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

struct SymmetryTally {
  std::size_t compared = 0;
  std::size_t by_servers = 0;  ///< of them; they turn by more than one rank
  std::size_t refused = 0;
};

/// Compares both ways if the schedule rotates.
void compare(const Schedule& schedule, const std::string& name, SymmetryTally& tally) {
  const std::optional<Rotation> rotation = Rotation::of(schedule);
  if (!rotation) return;
  const CheckReport one = check(schedule, by_rotation);
  const CheckReport all = check(schedule, rank_by_rank);
  ++tally.compared;
  if (rotation->period() > 1) ++tally.by_servers;
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
  std::map<std::string, SymmetryTally> tallies;
  for_each_schedule({2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 33}, [&](const Schedule& schedule, const std::string& name) {
    compare(schedule, fmt::format("{}, {} ranks", name, schedule.ranks), tallies[name]);
  });
  for (const auto& [name, tally] : tallies) EXPECT_EQ(tally.refused, 0U) << name;
  EXPECT_EQ(tallies["allreduce ring"].compared, 11U);
  EXPECT_EQ(tallies["allreduce ring, op"].compared, 11U);
  EXPECT_EQ(tallies["allreduce two-shot"].compared, 11U);
  EXPECT_EQ(tallies["allreduce halving-doubling"].compared, 0U);
  // Turned by servers, of which two ranks are none.
  EXPECT_EQ(tallies["allreduce 2 x rest, mesh, nhr, reduced by a core"].by_servers, 4U);
  EXPECT_EQ(tallies["reduce-scatter 2 x 2 x rest, ring, mesh, mesh"].by_servers, 4U);
  EXPECT_GT(tallies["allreduce 4 servers, ring and ring, op"].by_servers, 0U);
  EXPECT_GT(tallies["allgather 2 x rest, mesh, nhr, reduced by a core, op"].by_servers, 0U);
  std::size_t by_servers = 0;
  for (const auto& [name, tally] : tallies) by_servers += tally.by_servers;
  EXPECT_GT(by_servers, 100U);
}

/// A ring in which a second queue adds what the first one has received; the first one goes on meanwhile.
Schedule ring_with_adder(Rank ranks) {
  Schedule ring = ring_allreduce({ranks, std::uint64_t{ranks} * 96}, false);
  Strand& strand = ring.stages[0].strands[0];
  const auto local = [&](TaskKind kind, std::uint32_t slot) {
    Task task;
    task.kind = kind;
    task.notify.base = static_cast<std::int32_t>(ring.notifies + slot);
    task.by_core = false;
    return task;
  };
  std::vector<Task>& tasks = strand.loops[0].tasks;
  Loop adding{.rounds = strand.loops[0].rounds,
              .tasks = {local(TaskKind::local_wait, 0), tasks.back(), local(TaskKind::local_post, 1)}};
  tasks.back() = local(TaskKind::local_post, 0);
  tasks.push_back(local(TaskKind::local_wait, 1));
  ring.stages[0].strands.push_back({.group = strand.group, .first_queue = 1, .loops = {std::move(adding)}});
  ring.queues = 2;
  ring.notifies += 2;
  return ring;
}

TEST(CheckerSymmetry, OneRankSaysTheSameAsAllWithLocalNotifies) {
  std::mt19937_64 random(9);
  SymmetryTally tally;
  for (const Rank ranks : {2U, 3U, 8U, 9U}) {
    const Schedule schedule = ring_with_adder(ranks);
    compare(schedule, fmt::format("{} ranks", ranks), tally);
    EXPECT_TRUE(check(schedule, by_rotation).ok);
    for (int i = 0; i < 60; ++i) {
      const auto mutation = static_cast<test::Mutation>(random() % test::mutations);
      const std::optional<Schedule> mutant = test::mutate_closed_form(schedule, mutation, random);
      if (mutant) compare(*mutant, fmt::format("{} ranks: {}", ranks, name_of(mutation)), tally);
    }
  }
  EXPECT_GT(tally.compared, 100U);
  EXPECT_GT(tally.refused, 80U);
}

TEST(CheckerSymmetry, OneRankSaysTheSameAsAllOfWrongSchedules) {
  std::mt19937_64 random(4);
  SymmetryTally tally;
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
  EXPECT_GT(tally.by_servers, 1000U);
}

/// The second rank of every server writes to the first one after its last task.
TEST(CheckerSymmetry, ARankThatHasEndedInTheMiddleOfItsServer) {
  const Operation operation{.ranks = 16, .elements = 16 * 96};
  std::size_t compared = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    if (algorithm.collective != Collective::allreduce || !algorithm.fits(operation.ranks)) continue;
    Schedule schedule = algorithm.build(operation);
    const std::optional<Rotation> rotation = Rotation::of(schedule);
    if (!rotation || rotation->period() == 1) continue;
    SCOPED_TRACE(algorithm.name);
    ASSERT_TRUE(check(schedule, by_rotation).ok);
    const auto groups = static_cast<std::uint16_t>(schedule.groups.size());
    for (const Rank member : {0U, 1U}) schedule.groups.push_back(Group::ordered(rotation->period(), {member}));
    Task task;
    task.kind = TaskKind::post;
    task.peer = {Peer::Kind::offset, static_cast<std::uint16_t>(groups + 1), {}};
    task.notify.base = static_cast<std::int32_t>(schedule.notifies++);
    Task wait = task;
    wait.kind = TaskKind::wait;
    Task write;
    write.kind = TaskKind::write;
    write.peer = {Peer::Kind::offset, groups, {}};
    const auto alone = [](std::uint16_t group, std::vector<Task> tasks) {
      return Strand{.group = group, .loops = {{.tasks = std::move(tasks)}}};
    };
    schedule.stages.push_back(
        {"late", {alone(groups, {task}), alone(static_cast<std::uint16_t>(groups + 1), {wait, write})}});
    ASSERT_TRUE(Rotation::of(schedule));
    const CheckReport report = check(schedule, by_rotation);
    ASSERT_EQ(report.levels.back().level, "L3") << text_of(report);
    EXPECT_EQ(report.levels.back().findings.at(0).kind, "after-end") << text_of(report);
    EXPECT_EQ(essence(report), essence(check(schedule, rank_by_rank)));
    ++compared;
  }
  EXPECT_GT(compared, 3U);
}

TEST(CheckerSymmetry, BuffersThatAreTooSmallForSomeRanks) {
  SymmetryTally tally;
  for_each_schedule({2, 3, 4, 6, 9, 16}, [&](const Schedule& schedule, const std::string& name) {
    if (!Rotation::of(schedule)) return;
    for (const Buffer buffer : {Buffer::scratch, Buffer::ccl}) {
      for (const Bytes missing : {Bytes{128}, schedule.size(buffer, 0) / 2, schedule.size(buffer, 0)}) {
        Schedule small = schedule;
        Bytes& size = buffer == Buffer::scratch ? small.scratch : small.ccl;
        if (missing > size || missing == 0) continue;
        size -= missing;
        EXPECT_EQ(essence(check(small, by_rotation)), essence(check(small, rank_by_rank))) << name << missing;
        ++tally.compared;
        if (!check(small, by_rotation).ok) ++tally.refused;
      }
    }
  });
  EXPECT_GT(tally.refused, 100U);
  // A single copy into a buffer with room for the slice of rank 0 alone.
  Schedule copy = ring_allreduce({4, 4 * 96}, true);
  Task task;
  task.source.cuts = {{.parts = 4, .index = {0, 1, 0, 0}}};
  task.destination = task.source;
  task.destination.buffer = Buffer::scratch;
  copy.stages = {{"copy", {{.loops = {{.tasks = {task}}}}}}};
  copy.scratch = Bytes{96} * 4;
  const CheckReport report = check(copy, by_rotation);
  ASSERT_FALSE(report.levels.front().ok) << text_of(report);
  EXPECT_EQ(report.levels.front().findings.at(0).kind, "range");
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
  EXPECT_FALSE(rotate_alike(ring, built<Algorithm::halving_doubling>({16384, 16384 * 64}, true)));
}

/// What a rank does in time: kind, stage, bytes, what place_of() says of the peer, notify and unit of every task.
template <typename PlaceOf>
std::vector<std::array<std::uint64_t, 6>> in_time(const Schedule& schedule, Rank rank, const PlaceOf& place_of) {
  std::vector<std::array<std::uint64_t, 6>> tasks;
  for_each_task(schedule, rank, [&](std::uint32_t stage, const QueueWalk& walk) {
    const Task& task = *walk.task();
    const bool notifies = is_notify(task.kind);
    const Rank peer = has_peer(task.kind) ? walk.peer(schedule, rank) : rank;
    tasks.push_back({static_cast<std::uint64_t>(task.kind), stage, notifies ? 0 : walk.bytes(schedule, rank),
                     place_of(peer), notifies ? walk.notify() : 0, static_cast<std::uint64_t>(task.by_core)});
  });
  return tasks;
}

/// … with the distance of the peer.
std::vector<std::array<std::uint64_t, 6>> in_time(const Schedule& schedule, Rank rank) {
  return in_time(schedule, rank, [&](Rank peer) { return (peer + schedule.ranks - rank) % schedule.ranks; });
}

// Every rank against the one that is said to do the same, task by task.
TEST(CheckerSymmetry, PeriodInTime) {
  std::size_t found = 0;
  std::size_t without_rotation = 0;
  for_each_schedule({4, 6, 8, 16}, [&](const Schedule& schedule, const std::string& name) {
    const std::optional<Rank> period = period_in_time(schedule);
    if (!period.has_value()) return;
    ++found;
    if (!Rotation::of(schedule)) ++without_rotation;
    for (Rank rank = *period; rank < schedule.ranks; ++rank) {
      ASSERT_EQ(in_time(schedule, rank), in_time(schedule, rank - *period)) << name << ", rank " << rank;
    }
  });
  EXPECT_GT(found, 50U);
  EXPECT_GT(without_rotation, 0U);
}

TEST(CheckerSymmetry, HalfTurnsInTime) {
  std::size_t beyond_periods = 0;
  std::size_t other = 0;
  for_each_schedule({4, 6, 8, 16}, [&](const Schedule& schedule, const std::string& name) {
    if (!half_turns_in_time(schedule)) {
      ++other;
      return;
    }
    if (!period_in_time(schedule).has_value()) ++beyond_periods;
    const Rank half = schedule.ranks / 2;
    for (Rank rank = half; rank < schedule.ranks; ++rank) {
      ASSERT_EQ(in_time(schedule, rank), in_time(schedule, rank - half)) << name << ", rank " << rank;
    }
  });
  EXPECT_GT(beyond_periods, 4U);
  EXPECT_GT(other, 50U);
  for (const Rank ranks : {2U, 8U, 64U}) {
    const auto even = built<Algorithm::halving_doubling>({ranks, std::uint64_t{ranks} * 64}, true);
    EXPECT_TRUE(half_turns_in_time(even)) << ranks;
    EXPECT_FALSE(period_in_time(even).has_value()) << ranks;
    EXPECT_FALSE(half_turns_in_time(built<Algorithm::halving_doubling>({ranks, std::uint64_t{ranks} * 64 + 32}, true)));
  }
  EXPECT_FALSE(half_turns_in_time(built<Algorithm::halving_doubling>({6, 6 * 64}, true)));
}

// Every rank against the one of the next place in its block, task by task.
TEST(CheckerSymmetry, TurnsInBlocksInTime) {
  std::map<Rank, std::size_t> found;
  std::size_t of_unequal_slices = 0;
  for_each_schedule({4, 6, 8, 16}, [&](const Schedule& schedule, const std::string& name) {
    for (Rank block = 2; block < schedule.ranks; ++block) {
      if (!turns_in_blocks_in_time(schedule, block)) continue;
      ++found[block];
      if (!period_in_time(schedule).has_value()) ++of_unequal_slices;
      const auto image = [block](Rank rank) { return rank - rank % block + (rank + 1) % block; };
      for (Rank rank = 0; rank < schedule.ranks; ++rank) {
        ASSERT_EQ(in_time(schedule, rank, image), in_time(schedule, image(rank), std::identity()))
            << name << ", rank " << rank << ", block " << block;
      }
    }
  });
  EXPECT_GT(found[2], 5U);
  EXPECT_GT(found[4], 5U);
  EXPECT_EQ(found[5], 0U);
  EXPECT_GT(of_unequal_slices, 0U);
}

TEST(CheckerSymmetry, HierarchyOn16384Ranks) {
  const Operation operation{.ranks = 16384, .elements = std::uint64_t{16384} * 32};
  const CheckReport report = check(hierarchical(operation, {{8, Algorithm::mesh}, {2048, Algorithm::nhr}}));
  EXPECT_TRUE(report.ok) << text_of(report);
  ASSERT_TRUE(report.distances && report.order);
  EXPECT_EQ(report.distances->sent, report.distances->least_sent);
  EXPECT_EQ(report.order->additions, 7U + 11U);
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
