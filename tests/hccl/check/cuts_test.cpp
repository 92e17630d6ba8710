#include "hccl/check/cuts.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "hccl/check/check.hpp"
#include "hccl/check/symmetry/symmetry.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/verify/topology_cuts.hpp"
#include "tests/support/collective_algorithms.hpp"
#include "tests/support/simulation.hpp"

/// What has to cross the borders of groups, what does, and how fast it can.
namespace hcclsim::hccl {
namespace {

using Groups = std::vector<std::uint32_t>;

TaskProgram program_to_cut(const Schedule& schedule) {
  Findings none(1);
  return unroll(schedule, none);
}

/// Four ranks in two servers, blocks (or payloads) of 100 elements of 4 bytes; the root is rank 1.
TEST(Cuts, LeastBytesByHand) {
  const Groups servers{0, 0, 1, 1};
  const auto expect = [&](Collective collective, const std::vector<GroupBytes>& expected) {
    const bool in_place = collective != Collective::alltoall && collective != Collective::send_recv;
    const Operation operation{.ranks = 4, .elements = 100, .collective = collective, .root = 1, .in_place = in_place};
    const std::vector<GroupBytes> found = least_crossing(operation, servers);
    ASSERT_EQ(found.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(found[i].out, expected[i].out) << name_of(collective) << ", server " << i;
      EXPECT_EQ(found[i].in, expected[i].in) << name_of(collective) << ", server " << i;
    }
  };
  expect(Collective::allreduce, {{400, 400}, {400, 400}});
  expect(Collective::reduce, {{0, 400}, {400, 0}});
  expect(Collective::broadcast, {{400, 0}, {0, 400}});
  expect(Collective::reduce_scatter, {{800, 800}, {800, 800}});
  expect(Collective::allgather, {{800, 800}, {800, 800}});
  expect(Collective::scatter, {{800, 0}, {0, 800}});
  expect(Collective::gather, {{0, 800}, {800, 0}});
  expect(Collective::alltoall, {{1600, 1600}, {1600, 1600}});
  expect(Collective::send_recv, {{400, 400}, {400, 400}});
  expect(Collective::barrier, {{0, 0}, {0, 0}});
}

TEST(Cuts, LeastBytesOfBlocksThatDiffer) {
  const Groups servers{0, 1, 1};
  const Operation gathered{
      .ranks = 3, .collective = Collective::allgather, .counts = BlockCounts::of_blocks({5, 7, 11})};
  const std::vector<GroupBytes> blocks = least_crossing(gathered, servers);
  EXPECT_EQ(blocks[0].out, 4U * 5);
  EXPECT_EQ(blocks[0].in, 4U * 18);
  EXPECT_EQ(blocks[1].out, 4U * 18);
  const Operation exchanged{.ranks = 3,
                            .collective = Collective::alltoall,
                            .in_place = false,
                            .counts = BlockCounts::of_pairs(3, {9, 1, 2, 3, 9, 4, 5, 6, 9})};
  const std::vector<GroupBytes> pairs = least_crossing(exchanged, servers);
  EXPECT_EQ(pairs[0].out, 4U * (1 + 2));
  EXPECT_EQ(pairs[0].in, 4U * (3 + 5));
  EXPECT_EQ(pairs[1].out, 4U * (3 + 5));
}

TEST(Cuts, ARingCrossesTheBorderOfTwoServersTwiceARound) {
  const Schedule ring = ring_allreduce({8, 8 * 32}, true);
  const Groups servers{0, 0, 0, 0, 1, 1, 1, 1};
  const Bytes slice = 128;
  CheckOptions options{.cuts = {{"server", servers, {1e9, 1e9}, {1e9, 1e9}}}, .least_step = 1e-9};
  const CheckReport report = check(ring, options);
  ASSERT_TRUE(report.distances);
  const CutDistance& cut = report.distances->cuts.at(0);
  EXPECT_EQ(cut.crossing, 2 * 14 * slice);
  EXPECT_EQ(cut.least, 2 * 8 * slice);
  EXPECT_DOUBLE_EQ(cut.least_time, 8.0 * slice / 1e9);
  EXPECT_EQ(report.distances->least_time_of, "server");
  options.least_step = 1;
  EXPECT_DOUBLE_EQ(check(ring, options).distances->least_time, 3);
  EXPECT_EQ(check(ring, options).distances->least_time_of, "steps");
  // One rank in place of all.
  options.rotation_from = 2;
  EXPECT_EQ(check(ring, options).distances->cuts.at(0).crossing, 2 * 14 * slice);
}

TEST(Cuts, NoAlgorithmDoesWithLess) {
  std::mt19937_64 random(11);
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : {2U, 3U, 4U, 8U, 9U}) {
      if (!algorithm.fits(ranks)) continue;
      const TaskProgram program = program_to_cut(algorithm.build(test::operation_of(algorithm, ranks, 96)));
      for (int repetition = 0; repetition < 4; ++repetition) {
        SCOPED_TRACE(fmt::format("{}, {}, {} ranks", algorithm.name, name_of(algorithm.collective), ranks));
        Groups group(ranks);
        for (std::uint32_t& of_rank : group) of_rank = static_cast<std::uint32_t>(random() % 3);
        group.front() = 0;  // so that there are two groups at least
        group.back() = 2;
        const std::vector<GroupBytes> least = least_crossing(program, group);
        const std::vector<GroupBytes> found = crossing(program, group);
        ASSERT_EQ(least.size(), found.size());
        for (std::size_t i = 0; i < least.size(); ++i) {
          if (std::find(group.begin(), group.end(), i) == group.end()) continue;
          EXPECT_LE(least[i].out, found[i].out) << "group " << i;
          EXPECT_LE(least[i].in, found[i].in) << "group " << i;
        }
      }
    }
  }
}

/// Speeds out of every group of a level, in GB/s, behind the number of levels.
std::vector<double> speeds(const test::TestPlatform& platform, Rank ranks) {
  const std::string path = test::write_platform(platform);
  return test::in_child([&] {
    sim::Cluster cluster(path);
    std::vector<Rank> npus(ranks);
    std::iota(npus.begin(), npus.end(), Rank{0});
    const TopologyBounds bounds = topology_bounds(cluster, npus, {}, ranks);
    std::vector<double> found{static_cast<double>(bounds.cuts.size()), bounds.least_step / microsecond};
    for (const CutLevel& level : bounds.cuts) {
      for (const BytesPerSecond speed : level.out) found.push_back(speed / giga);
      for (const BytesPerSecond speed : level.in) found.push_back(speed / giga);
    }
    return found;
  });
}

TEST(Cuts, SpeedsOfAPlatform) {
  // Two servers of three NPUs: an NPU has two links of 10 GB/s and a port of 5 GB/s, a server three ports. The least
  // step takes 1 us on the way and 0.6 us to set up.
  const std::vector<double> two = speeds({.servers = 2, .npus_per_server = 3}, 6);
  ASSERT_EQ(two.size(), 2U + 2 * 6 + 2 * 2);
  EXPECT_EQ(two[0], 2);
  EXPECT_DOUBLE_EQ(two[1], 1.6);
  for (std::size_t i = 2; i < 14; ++i) EXPECT_DOUBLE_EQ(two[i], 25) << i;
  for (std::size_t i = 14; i < 18; ++i) EXPECT_DOUBLE_EQ(two[i], 15) << i;
  // One server: no border but those of the NPUs. One NPU: none at all.
  EXPECT_EQ(speeds({.servers = 2, .npus_per_server = 3}, 3), (std::vector<double>{1, 1.6, 20, 20, 20, 20, 20, 20}));
  EXPECT_EQ(speeds({.servers = 2, .npus_per_server = 3}, 1), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace hcclsim::hccl
