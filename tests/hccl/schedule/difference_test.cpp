#include "hccl/schedule/difference.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "base/counter_random.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/schedule/alignment.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "tests/support/built.hpp"

/// Differences of schedules: what is found after one change in the text of a ring on four ranks, and the alignment
/// below it against a search for the longest common subsequence.
namespace hcclsim::hccl {
namespace {

/// Changes of a stage by their kind.
struct Counts {
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
  std::uint64_t moved = 0;
  std::uint64_t changed = 0;

  [[nodiscard]] std::uint64_t all() const { return added + removed + moved + changed; }
  bool operator==(const Counts&) const = default;
};

Counts counts_of(const std::array<std::uint64_t, change_kinds>& of_kind) {
  const auto count = [&](ChangeKind kind) { return of_kind[static_cast<std::size_t>(kind)]; };
  return {.added = count(ChangeKind::added),
          .removed = count(ChangeKind::removed),
          .moved = count(ChangeKind::moved),
          .changed = count(ChangeKind::changed)};
}

void PrintTo(const Counts& counts, std::ostream* out) {  // NOLINT(readability-identifier-naming): GoogleTest calls it
  *out << counts.added << " added, " << counts.removed << " removed, " << counts.moved << " moved, " << counts.changed
       << " changed";
}

constexpr Operation among_four{.ranks = 4, .elements = 128};

Schedule ring_of_four() { return ring_allreduce(among_four, true); }

/// The ring with the first `from` in its text replaced.
Schedule edited(const std::string& from, const std::string& to) {
  std::string text = text_of(ring_of_four());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return parse_schedule_text(text.replace(at, from.size(), to), "edited");
}

/// The only stage that differs, when the headers are equal.
StageDifference changes(const Schedule& schedule) {
  const ScheduleDifference found = difference(ring_of_four(), schedule);
  EXPECT_TRUE(found.fields.empty());
  EXPECT_FALSE(found.equal());
  return found.stages.empty() ? StageDifference{} : found.stages.front();
}

TEST(Difference, EqualSchedulesAreEqual) {
  EXPECT_TRUE(difference(ring_of_four(), ring_of_four()).equal());
  // Slice p−r−1 of 4, written in another way.
  EXPECT_TRUE(difference(ring_of_four(), edited("[p-r-1 of 4]", "[p+3-r of 4]")).equal());
}

// A rank has 2 loops of 3 rounds of 5 tasks in either schedule: 60 tasks in both.
TEST(Difference, StopsAfterEnoughTasksOnlyWhereSomethingDiffers) {
  const Schedule other = edited("p+1", "p+2");
  constexpr std::uint64_t of_a_rank = 60;
  EXPECT_EQ(difference(ring_of_four(), other).compared_ranks, 4U);
  const ScheduleDifference cut = difference(ring_of_four(), other, of_a_rank + 1);
  EXPECT_EQ(cut.ranks, 4U);
  EXPECT_EQ(cut.compared_ranks, 2U);
  ASSERT_EQ(cut.stages.size(), 1U);
  EXPECT_EQ(counts_of(cut.stages.front().transfers), Counts{.changed = 6});  // 3 rounds on each of the 2 ranks

  const Schedule same = edited("[p-r-1 of 4]", "[p+3-r of 4]");
  EXPECT_EQ(difference(ring_of_four(), same, 1).compared_ranks, 4U);
  Schedule renamed = same;
  renamed.algorithm = "loop";
  EXPECT_EQ(difference(ring_of_four(), renamed, 1).compared_ranks, 1U);
}

TEST(Difference, OfTheHeaderIsNamed) {
  Schedule other = ring_of_four();
  other.op = ReduceOp::max;
  other.algorithm = "loop";
  other.stages[0].name = "round";
  other.notifies = 9;
  const ScheduleDifference found = difference(ring_of_four(), other);
  std::vector<std::string> lines;
  for (const FieldDifference& field : found.fields)
    lines.push_back(field.name + " " + field.first + " " + field.second);
  EXPECT_EQ(lines,
            (std::vector<std::string>{"algorithm ring loop", "op sum max", "notifies 4 9", "stages ring round"}));
  EXPECT_TRUE(found.stages.empty());
}

TEST(Difference, CountsAreShownIfTheyAreFew) {
  const auto with = [](std::vector<std::uint64_t> counts) {
    Schedule schedule;
    schedule.ranks = static_cast<Rank>(counts.size());
    schedule.collective = Collective::allgather;
    schedule.counts = BlockCounts::of_blocks(std::move(counts));
    return schedule;
  };
  const auto line = [](const Schedule& first, const Schedule& second) {
    const FieldDifference field = difference(first, second).fields.at(0);
    return field.name + ": " + field.first + " -> " + field.second;
  };
  EXPECT_EQ(line(with({1, 2, 3}), with({1, 5, 3})), "counts: 1 2 3 -> 1 5 3");
  std::vector<std::uint64_t> many(100, 7);
  const Schedule before = with(many);
  many[42] = 8;
  EXPECT_EQ(line(before, with(many)), "counts: 100 counts, number 42 is 7 -> 100 counts, number 42 is 8");
  Schedule alike = before;
  alike.counts = {};
  EXPECT_EQ(line(before, alike), "counts: 100 counts, number 0 is 7 -> none");
}

// Three rounds on four ranks.
TEST(Difference, ALostWaitIsRemoved) {
  const StageDifference stage = changes(edited("task { kind: wait notify: \"0\" }", ""));
  EXPECT_EQ(counts_of(stage.transfers), Counts{});
  EXPECT_EQ(counts_of(stage.others), Counts{.removed = 12});
  ASSERT_EQ(stage.examples.size(), 3U);
  const TaskChange& change = stage.examples[1];
  EXPECT_FALSE(change.second.has_value());
  ASSERT_TRUE(change.first.has_value());
  EXPECT_EQ(change.first->rank, 0U);
  EXPECT_EQ(change.first->number, 6U);
  EXPECT_EQ(change.first->task, "wait for notify 0");
}

TEST(Difference, ASecondTransferIsAdded) {
  const std::string write = "task { kind: write peer: \"p+1\" source: \"output[p-r of 4]\" }";
  const StageDifference stage = changes(edited(write, write + write));
  EXPECT_EQ(counts_of(stage.transfers), Counts{.added = 12});
  EXPECT_EQ(counts_of(stage.others), Counts{});
  EXPECT_EQ(stage.examples.at(0).second->task, "write to 1: output 0+128 -> output 0+128");
}

TEST(Difference, AnotherPeerIsAChange) {
  const StageDifference stage = changes(edited("kind: write peer: \"p+1\" source", "kind: write peer: \"p+2\" source"));
  EXPECT_EQ(counts_of(stage.transfers), Counts{.changed = 12});
  EXPECT_EQ(stage.examples.at(0).first->task, "write to 1: output 0+128 -> output 0+128");
  EXPECT_EQ(stage.examples.at(0).second->task, "write to 2: output 0+128 -> output 0+128");
}

TEST(Difference, ATransferThatNoLongerReducesIsAChange) {
  const StageDifference stage = changes(edited("kind: write_reduce", "kind: write"));
  EXPECT_EQ(counts_of(stage.transfers), Counts{.changed = 12});
}

TEST(Difference, ATaskElsewhereInTheOrderIsMoved) {
  const std::string wait = "task { kind: wait notify: \"0\" }";
  const std::string write = "task { kind: write_reduce peer: \"p+1\" source: \"output[p-r-1 of 4]\" }";
  const StageDifference stage = changes(edited(wait + "\n      " + write, write + wait));
  const Counts transfers = counts_of(stage.transfers);
  const Counts others = counts_of(stage.others);
  EXPECT_EQ(transfers.moved + others.moved, 12U);
  EXPECT_EQ(transfers.all() + others.all(), 12U);
}

TEST(Difference, AStrandOnAnotherQueueIsMoved) {
  Schedule other = ring_of_four();
  other.stages[0].strands[0].first_queue = 1;
  other.queues = 2;
  const ScheduleDifference found = difference(ring_of_four(), other);
  ASSERT_EQ(found.fields.size(), 1U);
  EXPECT_EQ(found.fields.front().name, "queues");
  ASSERT_EQ(found.stages.size(), 1U);
  const StageDifference& stage = found.stages.front();
  EXPECT_EQ(counts_of(stage.transfers), Counts{.moved = 4 * 6});
  EXPECT_EQ(counts_of(stage.others), Counts{.moved = 4 * 24});
  const TaskChange& change = stage.examples.at(0);
  EXPECT_EQ(change.first->queue, 0U);
  EXPECT_EQ(change.second->queue, 1U);
}

// A stage before the others: they still correspond by their names.
TEST(Difference, ANewStageMovesNothing) {
  Schedule other = ring_of_four();
  Stage extra = other.stages[0];
  extra.name = "once more";
  other.stages.insert(other.stages.begin(), extra);
  const ScheduleDifference found = difference(ring_of_four(), other);
  ASSERT_EQ(found.stages.size(), 1U);
  EXPECT_EQ(found.stages.front().name, "once more");
  EXPECT_EQ(counts_of(found.stages.front().transfers), Counts{.added = 4 * 6});
}

TEST(Difference, MoreRanksAreAdded) {
  const ScheduleDifference found = difference(ring_of_four(), ring_allreduce({.ranks = 5, .elements = 128}, true));
  ASSERT_EQ(found.stages.size(), 1U);
  const Counts transfers = counts_of(found.stages.front().transfers);
  // 5 ranks with 8 transfers each instead of 4 with 6.
  EXPECT_EQ(transfers.added - transfers.removed, 40U - 24U);
}

// Whatever two schedules are, everything is in one of the four kinds or in both.
TEST(Difference, AddsUp) {
  const Schedule first = ring_of_four();
  const Schedule second = test::built<Algorithm::halving_doubling>(among_four, true);
  const ScheduleDifference found = difference(first, second);
  const ScheduleDifference back = difference(second, first);
  ASSERT_EQ(found.stages.size(), 1U);
  ASSERT_EQ(back.stages.size(), 1U);
  const Counts there = counts_of(found.stages.front().transfers);
  const Counts again = counts_of(back.stages.front().transfers);
  // 6 transfers of each rank became 4.
  EXPECT_EQ(there.added + 4 * 6, there.removed + 4 * 4);
  EXPECT_EQ(there.added + again.added, there.removed + again.removed);
}

std::vector<std::uint32_t> random_list(std::uint64_t seed, std::size_t length, std::uint32_t values) {
  std::vector<std::uint32_t> list(length);
  for (std::size_t i = 0; i < length; ++i) list[i] = static_cast<std::uint32_t>(counter_bits(seed, 0, i) % values);
  return list;
}

void expect_valid(const std::vector<AlignedPair>& pairs, const std::vector<std::uint32_t>& first,
                  const std::vector<std::uint32_t>& second) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    SCOPED_TRACE(fmt::format("pair {}", i));
    ASSERT_EQ(first.at(pairs[i].first), second.at(pairs[i].second));
    if (i > 0) {
      ASSERT_LT(pairs[i - 1].first, pairs[i].first);
      ASSERT_LT(pairs[i - 1].second, pairs[i].second);
    }
  }
}

std::size_t longest(const std::vector<std::uint32_t>& first, const std::vector<std::uint32_t>& second) {
  std::vector<std::vector<std::size_t>> length(first.size() + 1, std::vector<std::size_t>(second.size() + 1, 0));
  for (std::size_t i = 1; i <= first.size(); ++i) {
    for (std::size_t j = 1; j <= second.size(); ++j) {
      length[i][j] =
          first[i - 1] == second[j - 1] ? length[i - 1][j - 1] + 1 : std::max(length[i - 1][j], length[i][j - 1]);
    }
  }
  return length[first.size()][second.size()];
}

TEST(Alignment, OfShortListsIsTheLongestCommonSubsequence) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto first = random_list(2 * seed, seed % 13, 4);
    const auto second = random_list(2 * seed + 1, seed % 17, 4);
    const auto pairs = align(first, second);
    expect_valid(pairs, first, second);
    ASSERT_EQ(pairs.size(), longest(first, second));
  }
}

// A hundred random numbers deleted from a list, and a hundred put in, among a hundred thousand: found nearly all.
TEST(Alignment, OfLongListsFindsFewChanges) {
  const auto first = random_list(1, 100'000, 1'000'000);
  std::vector<std::uint32_t> second = first;
  for (std::uint64_t i = 0; i < 100; ++i) {
    second.erase(second.begin() + static_cast<std::ptrdiff_t>(counter_bits(2, 0, i) % second.size()));
    second.insert(second.begin() + static_cast<std::ptrdiff_t>(counter_bits(3, 0, i) % second.size()), 2'000'000);
  }
  const auto pairs = align(first, second);
  expect_valid(pairs, first, second);
  EXPECT_GE(pairs.size(), first.size() - 110);
}

// Every third number differs and the others are never unique, as in a ring whose transfers all have another peer.
TEST(Alignment, GoesByWindowsWhereNothingIsUnique) {
  std::vector<std::uint32_t> first(30'000);
  for (std::uint32_t i = 0; i < first.size(); ++i) first[i] = i % 3 == 0 ? 10 + i : i % 3;
  std::vector<std::uint32_t> second = first;
  for (std::uint32_t i = 0; i < second.size(); i += 3) second[i] += 100'000;
  const auto pairs = align(first, second);
  expect_valid(pairs, first, second);
  EXPECT_EQ(pairs.size(), 20'000U);
}

// Nothing unique to hold on to, and nothing in common at the ends.
TEST(Alignment, OfRandomBitsEndsSoon) {
  const auto first = random_list(1, 300'000, 2);
  auto second = random_list(2, 300'000, 2);
  second.front() = 1 - first.front();
  second.back() = 1 - first.back();
  expect_valid(align(first, second), first, second);
}

}  // namespace
}  // namespace hcclsim::hccl
