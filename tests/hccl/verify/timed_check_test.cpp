#include "hccl/verify/timed_check.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>

#include "base/child_process.hpp"
#include "hccl/check/check.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/verify/topology_cuts.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
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

/// What a test compares of a TimedCheck.
struct Timing {
  Seconds time = 0;
  Seconds bound = 0;
  Seconds alpha = 0;
  Seconds beta = 0;
  Seconds sharing = 0;
  Seconds gamma = 0;
  double efficiency = 0;
  Bytes carried = 0;
  std::uint64_t transfers = 0;
  bool keeps_bound = false;      ///< level L8
  bool carries_as_said = false;  ///< level L9

  [[nodiscard]] Seconds path() const { return alpha + beta + sharing + gamma; }
};

Timing figures_of(const TimedCheck& timing) {
  return {.time = timing.time,
          .bound = timing.bound,
          .alpha = timing.path.alpha(),
          .beta = timing.path.beta(),
          .sharing = timing.path.sharing,
          .gamma = timing.path.gamma(),
          .efficiency = timing.efficiency(),
          .carried = timing.conservation.carried,
          .transfers = timing.transfers,
          .keeps_bound = timing.l8.ok,
          .carries_as_said = timing.conservation.l9.ok};
}

TEST(TimedCheck, ARingOfTwoByHand) {
  const std::string platform = links_only(2);
  const Timing found = test::in_child([&] {
    return figures_of(TimedBench(platform).run(ring_allreduce({2, 5120}, true)));
  });
  // Two rounds: each 1 us on the way and 10240 B at 10 GB/s. Any schedule has to bring 20480 B from each to the other.
  EXPECT_DOUBLE_EQ(found.time, 4.048 * us);
  EXPECT_DOUBLE_EQ(found.bound, 2.048 * us);
  EXPECT_NEAR(found.alpha, 2 * us, 1e-15);
  EXPECT_NEAR(found.beta, 2.048 * us, 1e-15);
  EXPECT_NEAR(found.sharing, 0, 1e-15);
  EXPECT_EQ(found.gamma, 0);
  EXPECT_DOUBLE_EQ(found.efficiency, 2.048 / 4.048);
  EXPECT_EQ(found.carried, 4U * 10240);
  EXPECT_EQ(found.transfers, 4U);
  EXPECT_TRUE(found.keeps_bound);
  EXPECT_TRUE(found.carries_as_said);
}

TEST(TimedCheck, ReductionsByACoreAreOnThePath) {
  const std::string platform = test::write_platform({.npus_per_server = 2});
  const Timing found = test::in_child([&] {
    return figures_of(TimedBench(platform).run(ring_allreduce({2, 5120}, false)));
  });
  // A reduction of 10240 B: 0.6 us and 10 GB/s. Two transfers: 0.6 us to set up, 1 us on the way; two notifies each,
  // 1 us to post and 0.02 us to take.
  EXPECT_NEAR(found.gamma, 0.6 * us + 1.024 * us, 1e-15);
  EXPECT_NEAR(found.beta, 2.048 * us, 1e-15);
  EXPECT_NEAR(found.alpha, 2 * (1.6 + 2 * 1.02) * us, 1e-15);
  EXPECT_NEAR(found.time, found.alpha + found.beta + found.gamma, 1e-15);
}

TEST(TimedCheck, WhatIsFasterThanTheBoundIsFound) {
  const std::string platform = links_only(2);
  const std::string found = run_in_child([&] {
    const TimedCheck timing = TimedBench(platform).run(ring_allreduce({2, 5120}, true), 2.001 * us);
    return timing.l8.ok ? "nothing" : timing.l8.findings.front().kind;
  });
  EXPECT_EQ(found, "faster-than-bound");
}

/// Kinds of what L9 finds, and how often, where the simulation carried something else than the schedule says.
std::string lost(const Schedule& schedule, const Schedule& simulated, bool traced = true) {
  test::TestPlatform two_servers{.servers = 2, .npus_per_server = 2};
  const std::string platform = test::write_platform(two_servers);
  return run_in_child([&] {
    std::map<std::string, int> kinds{{"transfers", 0}, {"bytes-differ", 0}, {"links-differ", 0}};
    const LevelReport report = TimedBench(platform).conservation(schedule, simulated, traced);
    for (const Finding& finding : report.findings) ++kinds.at(finding.kind);
    return fmt::format("transfers {}, links {}, pairs {}{}", kinds.at("transfers"), kinds.at("links-differ"),
                       kinds.at("bytes-differ"),
                       report.ok == (report.count == 0) ? "" : ", and a verdict against them");
  });
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
      SCOPED_TRACE(fmt::format("{}, {}, {} ranks", algorithm.name, name_of(algorithm.collective), ranks));
      const Timing found = test::in_child([&] {
        const Schedule schedule = algorithm.build(test::operation_of(algorithm, ranks, 3000));
        return figures_of(TimedBench(platform).run(schedule));
      });
      ASSERT_TRUE(found.keeps_bound);
      ASSERT_TRUE(found.carries_as_said);
      ASSERT_NEAR(found.path(), found.time, 1e-12);
      ASSERT_GE(found.alpha, 0);
      ASSERT_GE(found.beta, 0);
      ASSERT_GE(found.sharing, -1e-15);
      ASSERT_GE(found.gamma, 0);
    }
  }
}

/// Without set-ups, latencies and notifies all of the path is bytes, reductions and copies: none is lost or counted
/// twice on the way through posts, forks and joins.
TEST(TimedCheck, WhereAlphaIsNothingThePathIsBytesAndReductions) {
  test::TestPlatform without{.servers = 2, .npus_per_server = 4, .inner_latency = "0us", .outer_latency = "0us"};
  without.properties = test::no_task_costs();
  const std::string platform = test::write_platform(without);
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : {2U, 5U, 8U}) {
      if (!algorithm.fits(ranks) || algorithm.collective == Collective::barrier) continue;
      SCOPED_TRACE(fmt::format("{}, {}, {} ranks", algorithm.name, name_of(algorithm.collective), ranks));
      const Timing found = test::in_child([&] {
        const Schedule schedule = algorithm.build(test::operation_of(algorithm, ranks, 3000));
        return figures_of(TimedBench(platform).run(schedule));
      });
      ASSERT_GT(found.beta, 0);
      ASSERT_NEAR(found.alpha, 0, 1e-9 * found.time);
    }
  }
}

/// Where nothing is shared, twice the bandwidth never takes longer.
TEST(TimedCheck, TwiceTheBandwidthIsNeverSlower) {
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    if (!algorithm.fits(8)) continue;
    SCOPED_TRACE(fmt::format("{}, {}", algorithm.name, name_of(algorithm.collective)));
    const auto time_at = [&](const char* bandwidth) {
      const std::string platform = links_only(8, bandwidth);
      return test::in_child([&] {
        const Schedule schedule = algorithm.build(test::operation_of(algorithm, 8, 8 * 1024));
        return TimedBench(platform).run(schedule).time;
      });
    };
    const Seconds slower = time_at("10GBps");
    const Seconds faster = time_at("20GBps");
    EXPECT_LE(faster, slower * (1 + 1e-12));
    if (algorithm.collective != Collective::barrier) {
      EXPECT_LT(faster, slower);
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
