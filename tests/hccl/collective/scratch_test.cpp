#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "hccl/collective/algorithm/builder.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/schedule/walk.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"

/// Scratch memory is as large as what is put into it, and slots do not reach into each other.
namespace hcclsim::hccl {
namespace {

/// Slices of slices of random numbers, and the windows that halving leaves; of `positions` positions, a power of two.
std::vector<Cut> random_cuts(std::mt19937_64& random, Rank positions) {
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  std::vector<Cut> cuts(1 + below(3));
  for (Cut& cut : cuts) {
    cut.index = {static_cast<std::int32_t>(below(8)), static_cast<std::int32_t>(below(3)), 0, 0};
    if (below(4) == 0) {
      cut.kind = Cut::Kind::halving;
      cut.parts = positions;
      cut.index = {static_cast<std::int32_t>(1 + below(2)), 0, 0, 0};
    } else {
      cut.parts = 1 + below(9);
      cut.count = 1 + below(cut.parts);
      if (cut.count <= (cut.parts + 1) / 2) cut.step = 1 + below(2);  // no part twice
    }
  }
  return cuts;
}

TEST(Scratch, ASlotTakesTheLongestRangeOfItsCuts) {
  std::mt19937_64 random(5);
  constexpr Rank ranks = 4;
  int tight = 0;
  for (int repetition = 0; repetition < 20'000; ++repetition) {
    SCOPED_TRACE(fmt::format("repetition {}", repetition));
    const Bytes alignment = Bytes{4} << (random() % 4);
    Builder builder({.ranks = ranks, .elements = random() % 200, .alignment = alignment}, "test");
    builder.add_group(Group::block(ranks));
    const std::vector<Cut> cuts = random_cuts(random, ranks);
    const Bytes stride = builder.reserve_scratch(3, cuts);
    const Schedule schedule = std::move(builder).finish();
    ASSERT_EQ(schedule.scratch, 3 * stride);
    Bytes longest = 0;
    for (Rank rank = 0; rank < ranks; ++rank) {
      longest = std::max(longest, length_of(schedule, scratch(cuts, {}, stride), {rank, rank, {rank, 0, 0}, 0}));
    }
    ASSERT_LE(longest, stride);
    if (longest > 0 && stride - longest < alignment) ++tight;
  }
  EXPECT_GT(tight, 8'000);
}

TEST(Scratch, NestedSlicesByHand) {
  // 40 bytes: four slices of 12 bytes at most; three of them, each cut into eight of 4 bytes at least.
  const auto slices = [](std::uint32_t parts, std::uint32_t count) {
    return Cut{.parts = parts, .count = count, .index = {}};
  };
  Builder builder({.ranks = 1, .elements = 10, .alignment = 4}, "test");
  EXPECT_EQ(builder.reserve_scratch(1, {slices(4, 3)}), 36U);
  EXPECT_EQ(builder.reserve_scratch(1, {slices(4, 3), slices(8, 1)}), 12U);
  EXPECT_EQ(builder.reserve_scratch(1, {slices(4, 4), slices(2, 1)}), 32U);
  EXPECT_EQ(builder.reserve_scratch(1, {}), 40U);
}

/// What a side of a task uses of scratch memory is inside of it, and of its slot.
void expect_inside(const Schedule& schedule, const Range& range, const Viewer& viewer, const std::string& what) {
  if (range.buffer != Buffer::scratch) return;
  std::vector<ByteRange> pieces;
  resolve(schedule, range, viewer, pieces);
  for (const ByteRange& piece : pieces) {
    ASSERT_LE(piece.offset + piece.length, schedule.scratch) << what;
    if (range.slot_stride > 0) {
      ASSERT_LE(piece.length, range.slot_stride) << what;
    }
  }
}

void expect_scratch_suffices(const Schedule& schedule, const std::string& what) {
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    for_each_task(schedule, rank, [&](std::uint32_t /*stage*/, const QueueWalk& walk) {
      if (walk.task()->kind == TaskKind::post || walk.task()->kind == TaskKind::wait) return;
      expect_inside(schedule, walk.task()->source, walk.source_viewer(schedule, rank), what);
      expect_inside(schedule, walk.task()->destination, walk.destination_viewer(schedule, rank), what);
    });
  }
}

TEST(Scratch, OfEveryAlgorithmSuffices) {
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : {2U, 3U, 7U, 8U, 9U, 16U, 17U}) {
      if (!algorithm.fits(ranks)) continue;
      for (const std::uint64_t elements : {1U, 61U, 1021U}) {
        for (const Bytes alignment : {Bytes{4}, Bytes{128}}) {
          Operation operation = test::operation_of(algorithm, ranks, elements);
          operation.alignment = alignment;
          const std::string what =
              fmt::format("{} {}, {} ranks, {} elements, alignment {}", name_of(operation.collective), algorithm.name,
                          ranks, elements, alignment);
          expect_scratch_suffices(algorithm.build(operation), what);
          const Staging windows{LaunchMode::op, Bytes{1024} * ranks};
          expect_scratch_suffices(staged(operation, windows, algorithm.build), what + ", in windows");
        }
      }
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
