#include "hccl/schedule/walk.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/builder.hpp"
#include "hccl/collective/algorithm/levels/hierarchical.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "tests/support/built.hpp"

/// Properties of the closed forms: cuts divide a payload without gap or overlap, and every notify that is posted is
/// waited for.
namespace hcclsim::hccl {
namespace {

constexpr Linear position{0, 1, 0, 0};
constexpr Linear round_number{0, 0, 1, 0};

Schedule payload(std::uint64_t elements, Bytes alignment, Rank ranks) {
  Builder builder({.ranks = ranks, .elements = elements, .alignment = alignment}, "test");
  builder.add_group(Group::block(ranks));
  return std::move(builder).finish();
}

/// Where a range lies that has at most one piece; an empty one at `end`.
ByteRange only_piece(const Schedule& schedule, const Range& range, Rank rank, std::uint32_t round, Bytes end = 0) {
  std::vector<ByteRange> pieces;
  resolve(schedule, range, {rank, rank, {rank, round, 0}, 0}, pieces);
  EXPECT_LE(pieces.size(), 1U);
  return pieces.empty() ? ByteRange{range.buffer, end, 0} : pieces.front();
}

/// The ranges follow each other from 0 to the payload's end; all but empty ones begin at multiples of the alignment.
void expect_partition(const std::vector<ByteRange>& ranges, const Schedule& schedule, const std::string& what) {
  Bytes end = 0;
  for (const ByteRange& range : ranges) {
    if (range.length == 0) continue;
    EXPECT_EQ(range.offset, end) << what;
    EXPECT_EQ(range.offset % schedule.alignment, 0U) << what;
    end = range.offset + range.length;
  }
  EXPECT_EQ(end, schedule.payload()) << what;
}

TEST(Walk, SlicesAndSlicesOfSlicesPartitionThePayload) {
  for (const Rank parts : {1U, 2U, 3U, 7U, 8U, 16U, 1000U}) {
    for (const std::uint64_t elements : {0U, 1U, 31U, 33U, 1000U, 4096U}) {
      for (const Bytes alignment : {Bytes{4}, Bytes{128}}) {
        const Schedule schedule = payload(elements, alignment, parts);
        const Range slice = output({{.parts = parts, .index = position}});
        const Range part = output({{.parts = parts, .index = position}, {.parts = 3, .index = round_number}});
        std::vector<ByteRange> slices;
        std::vector<ByteRange> pieces;
        for (Rank rank = 0; rank < parts; ++rank) {
          slices.push_back(only_piece(schedule, slice, rank, 0));
          for (std::uint32_t piece = 0; piece < 3; ++piece) {
            pieces.push_back(only_piece(schedule, part, rank, piece));
          }
        }
        const std::string what = fmt::format("{} parts of {} elements, alignment {}", parts, elements, alignment);
        expect_partition(slices, schedule, what);
        expect_partition(pieces, schedule, what);
      }
    }
  }
}

TEST(Walk, ASliceIndexIsTakenModuloTheParts) {
  const Schedule schedule = payload(700, 4, 7);
  for (std::int32_t index = -20; index <= 20; ++index) {
    const Range range = output({{.parts = 7, .index = {index, 0, 0, 0}}});
    EXPECT_EQ(only_piece(schedule, range, 0, 0).offset, 400U * static_cast<Bytes>((index + 21) % 7)) << index;
  }
}

TEST(Walk, EachHalvingDividesAWindowBetweenTheTwoThatExchange) {
  for (const Rank ranks : {2U, 4U, 8U, 64U}) {
    for (const std::uint64_t elements : {1U, 100U, 4097U}) {
      const Schedule schedule = payload(elements, 128, ranks);
      const auto window = [&](Rank rank, std::int32_t halvings, bool peer) {
        const Cut cut{.kind = Cut::Kind::halving, .peer = peer, .parts = ranks, .index = {halvings, 0, 0, 0}};
        return only_piece(schedule, output({cut}), rank, 0);
      };
      for (std::int32_t halvings = 1; Rank{1} << halvings <= ranks; ++halvings) {
        for (Rank rank = 0; rank < ranks; ++rank) {
          SCOPED_TRACE(fmt::format("{} ranks, {} elements, {} halvings, rank {}", ranks, elements, halvings, rank));
          const ByteRange whole = window(rank, halvings - 1, false);
          const ByteRange own = window(rank, halvings, false);
          const ByteRange theirs = window(rank, halvings, true);
          const bool upper = ((rank >> (halvings - 1)) & 1U) != 0;
          const auto& [low, high] = upper ? std::pair(theirs, own) : std::pair(own, theirs);
          EXPECT_EQ(low.length + high.length, whole.length);
          EXPECT_EQ(low.length > 0 ? low.offset : whole.offset, whole.offset);
          EXPECT_EQ(high.length > 0 ? high.offset : whole.offset + low.length, whole.offset + low.length);
          const ByteRange seen_by_peer = window(rank ^ (Rank{1} << (halvings - 1)), halvings, true);
          EXPECT_EQ(seen_by_peer.offset, own.offset);
          EXPECT_EQ(seen_by_peer.length, own.length);
        }
      }
    }
  }
}

/// What is posted and waited for at every notify slot, as posts minus waits, and the tasks seen.
struct Notifies {
  std::map<std::pair<Rank, std::uint32_t>, int> balance;
  std::uint64_t tasks = 0;
};

Notifies count_notifies(const Schedule& schedule) {
  Notifies counted;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    for (std::uint32_t stage = 0; stage < schedule.stages.size(); ++stage) {
      std::uint32_t queues = 0;
      for (std::uint32_t queue = 0; queue < schedule.queues; ++queue) {
        QueueWalk walk;
        if (!walk.enter(schedule, stage, rank, queue)) continue;
        ++queues;
        for (; walk.task() != nullptr; walk.next()) {
          ++counted.tasks;
          if (walk.task()->kind == TaskKind::post) ++counted.balance[{walk.peer(schedule, rank), walk.notify()}];
          if (walk.task()->kind == TaskKind::wait) --counted.balance[{rank, walk.notify()}];
          if (is_transfer(walk.task()->kind)) {
            EXPECT_NE(walk.peer(schedule, rank), rank);
          }
        }
      }
      EXPECT_LE(queues, schedule.queues);
    }
  }
  return counted;
}

/// Cuts of all kinds, with any numbers that a schedule may hold.
std::vector<Cut> cuts_of_random(std::mt19937_64& random, Rank ranks) {
  const auto below = [&](std::uint64_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  const auto index = [&] {
    return Linear{static_cast<std::int32_t>(below(60)) - 30, static_cast<std::int32_t>(below(5)) - 2, 0, 0};
  };
  std::vector<Cut> cuts;
  std::uint32_t picked = ranks;
  for (std::uint32_t i = below(3); i > 0; --i) {
    const std::uint32_t count = 1 + below(2 * picked);
    cuts.push_back(
        {.kind = Cut::Kind::block, .parts = picked, .count = count, .step = 1 + below(picked), .index = index()});
    picked = count;
  }
  for (std::uint32_t i = below(3); i > 0; --i) {
    if (below(4) == 0) {
      const std::uint32_t bits = below(5);
      const auto halvings = static_cast<std::int32_t>(1 + below(4));
      cuts.push_back({.kind = Cut::Kind::halving, .peer = below(2) == 0, .parts = 16U << bits, .index = {halvings}});
      continue;
    }
    const bool ordered = below(4) == 0;
    const std::uint32_t parts = ordered ? ranks : 1 + below(20);
    cuts.push_back({.ordered = ordered,
                    .parts = parts,
                    .count = 1 + below(parts + 3),
                    .step = 1 + below(parts + 3),
                    .index = index()});
  }
  return cuts;
}

TEST(Walk, TheLengthOfARangeIsThatOfAllItsPieces) {
  std::mt19937_64 random(5);
  std::vector<ByteRange> pieces;
  for (int round = 0; round < 20000; ++round) {
    const auto ranks = static_cast<Rank>(1 + random() % 12);
    const Bytes alignment = random() % 2 == 0 ? 4 : 128;
    Schedule schedule;
    static_cast<Operation&>(schedule) = {
        .ranks = ranks, .elements = random() % 700, .alignment = alignment, .collective = Collective::allgather};
    if (random() % 4 == 0) {
      std::vector<std::uint64_t> counts(ranks);
      for (std::uint64_t& count : counts) count = random() % 100;
      schedule.counts = BlockCounts::of_blocks(counts);
    }
    if (random() % 4 == 0) schedule.window = 1 + random() % 300;
    std::vector<Rank> backwards(ranks);
    std::iota(backwards.rbegin(), backwards.rend(), Rank{0});
    schedule.groups = {Group::ordered(ranks, backwards)};
    const Range range = output(cuts_of_random(random, ranks));
    const auto rank = static_cast<Rank>(random() % ranks);
    const Viewer viewer{rank, rank, {ranks - 1 - rank, 0, 0, static_cast<std::uint32_t>(random() % 3)}, 0};
    resolve(schedule, range, viewer, pieces);
    Bytes sum = 0;
    for (const ByteRange& piece : pieces) sum += piece.length;
    ASSERT_EQ(length_of(schedule, range, viewer), sum) << "round " << round;
  }
}

TEST(Walk, EveryPostHasItsWait) {
  for (const Rank ranks : {2U, 3U, 6U, 8U, 12U, 24U}) {
    const Operation spec{ranks, 1000};
    std::vector<Schedule> schedules{
        ring_allreduce(spec, false), mesh_one_shot_allreduce(spec, false),
        test::built<Algorithm::mesh_two_shot>(spec, true), test::built<Algorithm::halving_doubling>(spec, false),
        build_algorithm(Algorithm::multi_ring, spec, {.inline_reduce = true, .rings = double_ring(ranks)})};
    for (const Rank servers : {2U, 3U}) {
      if (ranks % servers != 0) continue;
      for (const auto outer : {Algorithm::ring, Algorithm::halving_doubling}) {
        schedules.push_back(hierarchical(spec, {{.size = ranks / servers, .algorithm = Algorithm::mesh},
                                                {.size = servers, .algorithm = outer, .inline_reduce = false}}));
      }
    }
    for (const Schedule& schedule : schedules) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", schedule.algorithm, ranks));
      const Notifies counted = count_notifies(schedule);
      EXPECT_GT(counted.tasks, 0U);
      for (const auto& [slot, balance] : counted.balance) {
        EXPECT_EQ(balance, 0) << "slot " << slot.second << " of rank " << slot.first;
        EXPECT_LT(slot.second, schedule.notifies);
      }
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
