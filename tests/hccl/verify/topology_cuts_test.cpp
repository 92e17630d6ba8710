#include "hccl/verify/topology_cuts.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/simulation.hpp"

namespace hcclsim::hccl {
namespace {

/// The least time in us on two servers of two; within them links of 10 GB/s, between them ports of 5 GB/s.
double least_us(Collective collective, std::uint64_t payload, const std::vector<Rank>& npus) {
  test::TestPlatform platform;
  platform.servers = 2;
  const std::string path = test::write_platform(platform);
  return test::in_child([&] {
    sim::Cluster cluster(path);
    Operation operation{.ranks = static_cast<Rank>(npus.size()), .elements = payload / 4, .collective = collective};
    operation.elements /= operation.blocks();
    return least_time(operation, topology_bounds(cluster, npus, {}, 16)) / microsecond;
  });
}

TEST(TopologyCuts, LeastTimesByHand) {
  constexpr std::uint64_t bytes = 4'000'000;
  // An NPU has a link and a port, 15 GB/s; a server two ports. Six payloads leave the NPUs, two the servers.
  EXPECT_DOUBLE_EQ(least_us(Collective::allreduce, bytes, {0, 1, 2, 3}), 400);
  // Three of the four blocks come to each NPU, two to each server.
  EXPECT_DOUBLE_EQ(least_us(Collective::allgather, bytes, {0, 1, 2, 3}), 200);
  // The server of the root sends everything.
  EXPECT_DOUBLE_EQ(least_us(Collective::broadcast, bytes, {0, 1, 2, 3}), 400);
  EXPECT_DOUBLE_EQ(least_us(Collective::allreduce, bytes, {0, 1}), 400);
  EXPECT_DOUBLE_EQ(least_us(Collective::allreduce, bytes, {0, 2}), 800);
  EXPECT_DOUBLE_EQ(least_us(Collective::allreduce, bytes, {3, 1}), 800);
  EXPECT_DOUBLE_EQ(least_us(Collective::allreduce, bytes, {0}), 0);
}

TEST(TopologyCuts, FewBytesTakeAStep) {
  EXPECT_DOUBLE_EQ(least_us(Collective::allreduce, 4, {0, 1}), 1 + 0.6);
  EXPECT_DOUBLE_EQ(least_us(Collective::allreduce, 4, {0, 2}), 2 + 0.6);
  EXPECT_DOUBLE_EQ(least_us(Collective::allreduce, 0, {0, 1}), 0);
}

/// Speeds of all groups of all levels, and the least step.
std::vector<double> numbers_of(const TopologyBounds& bounds) {
  std::vector<double> numbers{bounds.least_step};
  for (const CutLevel& level : bounds.cuts) {
    numbers.insert(numbers.end(), level.group.begin(), level.group.end());
    numbers.insert(numbers.end(), level.out.begin(), level.out.end());
    numbers.insert(numbers.end(), level.in.begin(), level.in.end());
  }
  return numbers;
}

// A few routes of each rank say the same as all of them where those to other servers are alike.
TEST(TopologyCuts, AFewRoutesSayTheSame) {
  const std::string shipped = HCCLSIM_PLATFORM_DIR;
  for (const std::string& path :
       {test::write_platform({.servers = 5, .npus_per_server = 3}), shipped + "/atlas800-9000-x4.xml",
        shipped + "/atlas800t-a2-x2.xml", shipped + "/atlas900-a3-superpod.xml"}) {
    SCOPED_TRACE(path);
    struct Found {
      bool all_routes_with_many = false;
      bool all_routes_with_few = false;
      bool same = false;
      std::size_t numbers = 0;
    };
    const Found found = test::in_child([&]() -> Found {
      sim::Cluster cluster(path);
      std::vector<Rank> npus(cluster.size());
      std::iota(npus.begin(), npus.end(), Rank{0});
      const TopologyBounds all = topology_bounds(cluster, npus, {}, 1024);
      const TopologyBounds few = topology_bounds(cluster, npus, {}, 2);
      return {.all_routes_with_many = all.all_routes,
              .all_routes_with_few = few.all_routes,
              .same = numbers_of(all) == numbers_of(few),
              .numbers = numbers_of(all).size()};
    });
    EXPECT_TRUE(found.all_routes_with_many);
    EXPECT_FALSE(found.all_routes_with_few);
    EXPECT_TRUE(found.same);
    EXPECT_GT(found.numbers, 15U);
  }
}

// In a server of hundreds of ranks a few routes of each say the same, or all are looked at: in a torus a rank has links
// in several directions.
TEST(TopologyCuts, AFewRoutesOfALargeServerSayTheSame) {
  for (const char* const topology : {"", R"( topology="TORUS" topo_parameters="3,10,10")"}) {
    SCOPED_TRACE(topology);
    const std::string path = testing::TempDir() + "large_server.xml";
    std::ofstream(path) << R"(<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-299" speed="1Gf" bw="1GBps" lat="1us")"
                        << topology << R"(><prop id="npu" value="910A"/></cluster></platform>)";
    const bool same = test::in_child([&] {
      sim::Cluster cluster(path);
      std::vector<Rank> npus(cluster.size());
      std::iota(npus.begin(), npus.end(), Rank{0});
      return numbers_of(topology_bounds(cluster, npus, {}, 1024)) == numbers_of(topology_bounds(cluster, npus, {}, 2));
    });
    EXPECT_TRUE(same);
  }
}

}  // namespace
}  // namespace hcclsim::hccl
