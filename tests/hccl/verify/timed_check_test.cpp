#include "hccl/verify/timed_check.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "hccl/check/check.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/verify/topology_cuts.hpp"
#include "tests/support/collective_algorithms.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/units.hpp"

/// Levels L8 and L9: the time of a schedule beside its bound, what it consists of, and what its links have carried.
namespace hcclsim::hccl {
namespace {

using test::us;

class TimedBench {
 public:
  explicit TimedBench(const std::string& platform) : cluster_(platform) {
    std::vector<std::string> notes;
    soc_ = device::resolve_soc(cluster_, 0, notes);
    costs_ = device::read_task_costs(cluster_, notes);
  }

  TimedCheck run(Schedule schedule, Seconds more_bound = 0) {
    std::vector<Rank> npus(schedule.ranks);
    std::iota(npus.begin(), npus.end(), Rank{0});
    TopologyBounds bounds = topology_bounds(cluster_, npus, costs_, schedule.ranks);
    const CheckReport report = check(schedule, {.cuts = std::move(bounds.cuts), .least_step = bounds.least_step});
    Distances distances = report.distances.value();
    distances.least_time += more_bound;
    return check_timing(std::make_shared<const Schedule>(std::move(schedule)), distances, cluster_, soc_, costs_);
  }

  /// Of one schedule, against the simulation of another one.
  LevelReport conservation(const Schedule& schedule, const Schedule& simulated, bool traced) {
    const SimulateOptions options{.trace = traced};
    const SimulatedCollectives result = simulate_collectives(
        cluster_, soc_, costs_, options, {{.name = "other", .schedule = std::make_shared<const Schedule>(simulated)}});
    return check_conservation(schedule, cluster_, result, traced).l9;
  }

 private:
  sim::Cluster cluster_;
  device::Soc soc_;
  device::TaskCosts costs_;
};

/// Links of 10 GB/s and 1 us, no other costs.
std::string links_only(Rank npus, const std::string& bandwidth = "10GBps") {
  test::TestPlatform platform{.npus_per_server = npus, .inner_bandwidth = bandwidth};
  platform.properties = test::no_task_costs();
  return test::write_platform(platform);
}

TEST(TimedCheck, ARingOfTwoByHand) {
  const std::string platform = links_only(2);
  const std::vector<double> found = test::in_child([&] {
    const TimedCheck timing = TimedBench(platform).run(ring_allreduce({2, 5120}, true));
    return std::vector<double>{timing.time,
                               timing.bound,
                               timing.path->alpha,
                               timing.path->beta,
                               timing.path->sharing,
                               timing.path->gamma,
                               timing.efficiency(),
                               timing.conservation.carried + 0.0,
                               timing.transfers + 0.0,
                               timing.l8.ok ? 1. : 0,
                               timing.conservation.l9.ok ? 1. : 0};
  });
  // Two rounds: each 1 us on the way and 10240 B at 10 GB/s. Any schedule has to bring 20480 B from each to the other.
  EXPECT_DOUBLE_EQ(found[0], 4.048 * us);
  EXPECT_DOUBLE_EQ(found[1], 2.048 * us);
  EXPECT_NEAR(found[2], 2 * us, 1e-15);
  EXPECT_NEAR(found[3], 2.048 * us, 1e-15);
  EXPECT_NEAR(found[4], 0, 1e-15);
  EXPECT_EQ(found[5], 0);
  EXPECT_DOUBLE_EQ(found[6], 2.048 / 4.048);
  EXPECT_EQ(found[7], 4 * 10240);
  EXPECT_EQ(found[8], 4);
  EXPECT_EQ(found[9], 1);
  EXPECT_EQ(found[10], 1);
}

TEST(TimedCheck, ReductionsByACoreAreOnThePath) {
  const std::string platform = test::write_platform({.npus_per_server = 2});
  const std::vector<double> found = test::in_child([&] {
    const TimedCheck timing = TimedBench(platform).run(ring_allreduce({2, 5120}, false));
    return std::vector<double>{timing.path->alpha, timing.path->beta, timing.path->gamma, timing.time};
  });
  // A reduction of 10240 B: 0.6 us and 10 GB/s. Two transfers: 0.6 us to set up, 1 us on the way; two notifies each,
  // 1 us to post and 0.02 us to take.
  EXPECT_NEAR(found[2], 0.6 * us + 1.024 * us, 1e-15);
  EXPECT_NEAR(found[1], 2.048 * us, 1e-15);
  EXPECT_NEAR(found[0], 2 * (1.6 + 2 * 1.02) * us, 1e-15);
  EXPECT_NEAR(found[3], found[0] + found[1] + found[2], 1e-15);
}

TEST(TimedCheck, WhatIsFasterThanTheBoundIsFound) {
  const std::string platform = links_only(2);
  const std::vector<double> found = test::in_child([&] {
    const TimedCheck timing = TimedBench(platform).run(ring_allreduce({2, 5120}, true), 2.001 * us);
    return std::vector<double>{timing.l8.ok ? 1. : 0, timing.l8.findings.at(0).kind == "faster-than-bound" ? 1. : 0};
  });
  EXPECT_EQ(found, (std::vector<double>{0, 1}));
}

/// Kinds of what L9 finds, and how often, where the simulation carried something else than the schedule says: "ok" if
/// it finds nothing.
std::string lost(const Schedule& schedule, const Schedule& simulated, bool traced = true) {
  test::TestPlatform two_servers{.servers = 2, .npus_per_server = 2};
  const std::string platform = test::write_platform(two_servers);
  const std::vector<double> found = test::in_child([&] {
    std::map<std::string, double> kinds{{"transfers", 0}, {"bytes-differ", 0}, {"links-differ", 0}};
    const LevelReport report = TimedBench(platform).conservation(schedule, simulated, traced);
    for (const Finding& finding : report.findings) ++kinds.at(finding.kind);
    return std::vector<double>{kinds["transfers"], kinds["links-differ"], kinds["bytes-differ"],
                               report.ok == (report.count == 0) ? 1. : 0.};
  });
  EXPECT_EQ(found[3], 1);
  return fmt::format("transfers {}, links {}, pairs {}", found[0], found[1], found[2]);
}

TEST(TimedCheck, WhatIsNotCarriedAsTheScheduleSaysIsFound) {
  const Schedule ring = ring_allreduce({4, 4096}, true);
  EXPECT_EQ(lost(ring, ring), "transfers 0, links 0, pairs 0");
  // The last round is lost: four transfers less, on all four ways of the ring.
  Schedule shorter = ring;
  shorter.stages[0].strands[0].loops[1].rounds.base = 2;
  EXPECT_EQ(lost(ring, shorter), "transfers 1, links 1, pairs 4");
  EXPECT_EQ(lost(ring, shorter, false), "transfers 1, links 1, pairs 0");
  EXPECT_EQ(lost(shorter, ring), "transfers 1, links 1, pairs 4");
  // As many transfers with fewer bytes.
  EXPECT_EQ(lost(ring, ring_allreduce({4, 2048}, true)), "transfers 0, links 1, pairs 4");
  // The other way round: the same on all links together, on other pairs.
  Schedule reversed = ring;
  for (Loop& loop : reversed.stages[0].strands[0].loops) {
    for (Task& task : loop.tasks) task.peer.value.base = -task.peer.value.base;
  }
  EXPECT_EQ(lost(ring, reversed), "transfers 0, links 0, pairs 8");
  EXPECT_EQ(lost(ring, reversed, false), "transfers 0, links 0, pairs 0");
  // Ranks 0, 2, 1, 3 one after the other: every way leads to the other server, over two ports.
  Schedule crossing = ring;
  crossing.groups[0] = Group::ordered(4, {0, 2, 1, 3});
  EXPECT_EQ(lost(ring, crossing, false), "transfers 0, links 1, pairs 0");
}

/// On two servers whose NPUs share nothing with each other: nobody is faster than the bound, everything arrives, and
/// the parts of the critical path are all of the time.
TEST(TimedCheck, EveryAlgorithmKeepsTheBoundAndItsBytes) {
  const std::string platform = test::write_platform({.servers = 2, .npus_per_server = 4});
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : {2U, 5U, 8U}) {
      if (!algorithm.fits(ranks)) continue;
      const std::vector<double> found = test::in_child([&] {
        const TimedCheck timing = TimedBench(platform).run(algorithm.build(test::operation_of(algorithm, ranks, 3000)));
        const CriticalPath& path = *timing.path;
        return std::vector<double>{timing.l8.ok ? 1. : 0, timing.conservation.l9.ok ? 1. : 0, timing.time,
                                   path.alpha + path.beta + path.sharing + path.gamma,
                                   std::min({path.alpha, path.beta, path.sharing + 1e-15, path.gamma})};
      });
      ASSERT_EQ(found[0], 1) << algorithm.name << ", " << name_of(algorithm.collective);
      ASSERT_EQ(found[1], 1) << algorithm.name << ", " << name_of(algorithm.collective);
      ASSERT_NEAR(found[3], found[2], 1e-12) << algorithm.name << ", " << name_of(algorithm.collective);
      ASSERT_GE(found[4], 0) << algorithm.name << ", " << name_of(algorithm.collective);
    }
  }
}

/// Where nothing is shared, twice the bandwidth never takes longer.
TEST(TimedCheck, TwiceTheBandwidthIsNeverSlower) {
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    if (!algorithm.fits(8)) continue;
    std::vector<double> times;
    for (const char* const bandwidth : {"10GBps", "20GBps"}) {
      const std::string platform = links_only(8, bandwidth);
      times.push_back(test::in_child([&] {
                        const Schedule schedule = algorithm.build(test::operation_of(algorithm, 8, 8 * 1024));
                        return std::vector<double>{TimedBench(platform).run(schedule).time};
                      }).front());
    }
    EXPECT_LE(times[1], times[0] * (1 + 1e-12)) << algorithm.name << ", " << name_of(algorithm.collective);
    if (algorithm.collective != Collective::barrier) {
      EXPECT_LT(times[1], times[0]) << algorithm.name;
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
