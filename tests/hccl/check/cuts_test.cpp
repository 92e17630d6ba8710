#include "hccl/check/cuts.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "hccl/check/check.hpp"
#include "hccl/check/symmetry/symmetry.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/verify/topology_cuts.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/simulation.hpp"

/// What has to cross the borders of groups, what does, and how fast it can.
namespace hcclsim::hccl {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;

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

/// The borders of a platform, from the innermost level outwards.
struct Borders {
  double least_step_us = 0;
  /// GB/s into and out of every group of a level, where all are alike; 0 where they differ.
  std::vector<double> speeds;
};

Borders borders(const test::TestPlatform& platform, Rank ranks) {
  const std::string path = test::write_platform(platform);
  const std::vector<double> numbers = test::in_child([&] {
    sim::Cluster cluster(path);
    std::vector<Rank> npus(ranks);
    std::iota(npus.begin(), npus.end(), Rank{0});
    const TopologyBounds bounds = topology_bounds(cluster, npus, {}, ranks);
    std::vector<double> found{bounds.least_step / microsecond};
    for (const CutLevel& level : bounds.cuts) {
      std::vector<BytesPerSecond> both = level.out;
      both.insert(both.end(), level.in.begin(), level.in.end());
      const auto [least, most] = std::ranges::minmax(both);
      found.push_back(most - least < 1e-6 * most ? most / giga : 0);
    }
    return found;
  });
  return {.least_step_us = numbers.front(), .speeds = {numbers.begin() + 1, numbers.end()}};
}

TEST(Cuts, SpeedsOfAPlatform) {
  const test::TestPlatform two_servers{.servers = 2, .npus_per_server = 3};
  // An NPU has two links of 10 GB/s and a port of 5 GB/s, a server three ports. The least step takes 1 us on the way
  // and 0.6 us to set up.
  const Borders of_both = borders(two_servers, 6);
  EXPECT_DOUBLE_EQ(of_both.least_step_us, 1.6);
  EXPECT_THAT(of_both.speeds, ElementsAre(DoubleEq(25), DoubleEq(15)));
  // One server: no border but those of the NPUs. One NPU: none at all.
  const Borders of_one = borders(two_servers, 3);
  EXPECT_DOUBLE_EQ(of_one.least_step_us, 1.6);
  EXPECT_THAT(of_one.speeds, ElementsAre(DoubleEq(20)));
  const Borders of_an_npu = borders(two_servers, 1);
  EXPECT_EQ(of_an_npu.least_step_us, 0);
  EXPECT_THAT(of_an_npu.speeds, IsEmpty());
}

}  // namespace
}  // namespace hcclsim::hccl
