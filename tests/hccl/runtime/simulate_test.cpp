#include "hccl/runtime/simulate.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "device/soc.hpp"
#include "hccl/collective/algorithm/builder.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/runtime/bandwidth.hpp"
#include "hccl/runtime/bottleneck.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/units.hpp"

/// Times of collectives, worked out by hand: alone, back to back with a host that issues them, and at the same time.
namespace hcclsim::hccl {
namespace {

using test::us;
constexpr double slice = 1.024;                    // 10240 B over a link of 10 GB/s
constexpr double two_ring_time = 2 * (1 + slice);  // a ring of two NPUs, each with 20480 B; alpha is 1 us

std::shared_ptr<const Schedule> small_ring_of_two() {
  return std::make_shared<const Schedule>(ring_allreduce({2, 5120}, true));
}

/// Each rank passes 10240 B on to the next one when it has them: rank 0 is done first.
std::shared_ptr<const Schedule> chain(Rank ranks) {
  Builder builder({.ranks = ranks, .elements = 2560, .collective = Collective::broadcast}, "chain");
  const std::uint16_t group = builder.add_group(Group::block(ranks));
  const std::int32_t written = builder.reserve_notifies(1);
  const Peer next{Peer::Kind::offset, group, {1, 0, 0, 0}};
  // Rounds by position: the first rank does not wait, the last one does not send.
  Strand strand{.group = group};
  strand.loops.push_back({.rounds = {0, 1, 0, 0}, .most_rounds = 1, .tasks = {wait({written})}});
  strand.loops.push_back({.rounds = {static_cast<std::int32_t>(ranks) - 1, -1, 0, 0},
                          .most_rounds = 1,
                          .tasks = {transfer(TaskKind::write, next, output({}), output({})), post(next, {written})}});
  builder.add_stage("chain").strands.push_back(std::move(strand));
  return std::make_shared<const Schedule>(std::move(builder).finish());
}

struct Bench {
  explicit Bench(Rank npus = 2, Seconds launch = 3 * us) : cluster(platform(npus)) {
    std::vector<std::string> notes;
    soc = device::resolve_soc(cluster, 0, notes);
    costs = device::read_task_costs(cluster, notes);
    costs.op_launch = launch;
  }
  SimulatedCollectives run(const SimulateOptions& options, const std::vector<CollectiveCall>& calls) {
    return simulate_collectives(cluster, soc, costs, options, calls);
  }
  static std::string platform(Rank npus) {
    test::TestPlatform platform{.npus_per_server = npus};
    platform.properties = test::no_task_costs();
    return test::write_platform(platform);
  }

  sim::Cluster cluster;
  device::Soc soc;
  device::TaskCosts costs;
};

class SimulateTest : public testing::TestWithParam<sim::NetworkKind> {
 protected:
  [[nodiscard]] SimulateOptions options(LaunchMode launch, std::uint32_t iterations, std::uint32_t warmups) const {
    return {.network = GetParam(), .launch = launch, .iterations = iterations, .warmups = warmups};
  }
  /// Numbers of a simulation in a child.
  static std::vector<double> times(const std::function<std::vector<double>()>& work) { return test::in_child(work); }
};
INSTANTIATE_TEST_SUITE_P(Simulate, SimulateTest, testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid),
                         [](const auto& info) { return std::string(sim::name_of(info.param)); });

testing::Matcher<std::vector<double>> near(const std::vector<double>& expected) {
  return testing::Pointwise(testing::DoubleNear(1e-9), expected);
}

TEST_P(SimulateTest, ACollectiveAlone) {
  const auto numbers = times([&] {
    Bench bench;
    const auto result = bench.run(options(LaunchMode::graph, 1, 0), {{"ring", small_ring_of_two()}});
    const CollectiveTime& time = result.calls.at(0);
    return std::vector<double>{time.start / us,
                               time.end / us,
                               time.duration / us,
                               time.per_iteration / us,
                               result.makespan / us,
                               static_cast<double>(result.transfers),
                               static_cast<double>(time.stats.transfers),
                               static_cast<double>(time.stats.payload),
                               time.stats.busiest_links.at(0).time / us};
  });
  EXPECT_THAT(numbers, near({0, two_ring_time, two_ring_time, two_ring_time, two_ring_time, 4, 4, 20480, 2 * slice}));
}

// Calls back to back: the host issues the next one while the device works.
TEST_P(SimulateTest, BackToBackCostsTheLargerOfDeviceAndHost) {
  const auto run = [&](LaunchMode mode, Seconds launch, std::uint32_t iterations, std::uint32_t warmups) {
    return times([&] {
      Bench bench(2, launch);
      const auto result = bench.run(options(mode, iterations, warmups), {{"ring", small_ring_of_two()}});
      return std::vector<double>{result.calls.at(0).per_iteration / us, result.makespan / us,
                                 static_cast<double>(result.simulated)};
    });
  };
  EXPECT_THAT(run(LaunchMode::graph, 9 * us, 4, 2), near({two_ring_time, 6 * two_ring_time, 1}));
  EXPECT_THAT(run(LaunchMode::op, 3 * us, 3, 1), near({two_ring_time, 3 + 4 * two_ring_time, 1}));
  EXPECT_THAT(run(LaunchMode::op, 3 * us, 2, 0), near({1.5 + two_ring_time, 3 + 2 * two_ring_time, 1}));
  EXPECT_THAT(run(LaunchMode::op, 10 * us, 3, 1), near({10, 40 + two_ring_time, 1}));
}

// The same without the argument that iterations are equal: two calls per iteration.
TEST_P(SimulateTest, WhatIsSimulatedOnceEqualsAllIterations) {
  const auto run = [&](LaunchMode mode, Seconds launch) {
    return times([&] {
      Bench bench(2, launch);
      const auto result = bench.run(options(mode, 2, 1), {{"one", small_ring_of_two()}, {"two", small_ring_of_two()}});
      return std::vector<double>{result.calls.at(0).per_iteration / us, result.calls.at(1).duration / us,
                                 result.calls.at(1).end / us, result.makespan / us,
                                 static_cast<double>(result.simulated)};
    });
  };
  EXPECT_THAT(run(LaunchMode::graph, 9 * us),
              near({2 * two_ring_time, two_ring_time, 6 * two_ring_time, 6 * two_ring_time, 3}));
  EXPECT_THAT(run(LaunchMode::op, 3 * us),
              near({2 * two_ring_time, two_ring_time, 3 + 6 * two_ring_time, 3 + 6 * two_ring_time, 3}));
  EXPECT_THAT(run(LaunchMode::op, 10 * us), near({20, two_ring_time, 60 + two_ring_time, 60 + two_ring_time, 3}));
}

// The same for algorithms on a real topology, where only some end on all ranks at once. A second call, which does
// nothing, keeps the iterations from being taken as equal unseen.
TEST_P(SimulateTest, EqualIterationsAreEqualOnAServerToo) {
  const auto run = [&](Algorithm algorithm, LaunchMode launch, bool all) {
    return times([&] {
      sim::Cluster cluster(std::string(HCCLSIM_PLATFORM_DIR) + "/atlas800-9000.xml");
      std::vector<std::string> notes;
      const device::Soc soc = device::resolve_soc(cluster, 0, notes);
      const device::TaskCosts costs = device::read_task_costs(cluster, notes);
      const Topology topology = topology_of(world_communicator(8), cluster);
      const auto schedule = make_collective({{.ranks = 8, .elements = 1 << 20}, algorithm}, topology, soc);
      const auto nothing = std::make_shared<const Schedule>(ring_allreduce({.ranks = 1, .elements = 1}, true));
      std::vector<CollectiveCall> calls{{"one", schedule}};
      if (all) calls.push_back({"nothing", nothing, {}, 0, 1});
      const auto result = simulate_collectives(cluster, soc, costs, options(launch, 3, 2), calls);
      return std::vector<double>{result.calls.at(0).per_iteration / us, static_cast<double>(result.simulated)};
    });
  };
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::multi_ring, Algorithm::halving_doubling, Algorithm::mesh_two_shot}) {
    SCOPED_TRACE(name_of(algorithm));
    const bool equal = algorithm == Algorithm::multi_ring || algorithm == Algorithm::halving_doubling;
    const std::vector<double> once = run(algorithm, LaunchMode::graph, false);
    const std::vector<double> each = run(algorithm, LaunchMode::graph, true);
    EXPECT_EQ(once.at(1), equal ? 1 : 5);
    EXPECT_EQ(each.at(1), 5);
    EXPECT_NEAR(once.at(0), each.at(0), 1e-9 * each.at(0));
    EXPECT_EQ(run(algorithm, LaunchMode::op, false).at(1), equal ? 1 : 5);
  }
}

// Ranks that end early begin the next iteration early: the chain becomes a pipeline with one transfer per iteration.
TEST_P(SimulateTest, IterationsOverlapWhereRanksEndAtDifferentDates) {
  const auto run = [&](LaunchMode mode, Seconds launch) {
    return times([&] {
      Bench bench(3, launch);
      const auto result = bench.run(options(mode, 3, 1), {{"chain", chain(3)}});
      return std::vector<double>{result.calls.at(0).per_iteration / us, result.makespan / us,
                                 static_cast<double>(result.simulated), static_cast<double>(result.transfers)};
    });
  };
  constexpr double hop = 1 + slice;
  EXPECT_THAT(run(LaunchMode::graph, 0), near({hop, 5 * hop, 4, 8}));
  EXPECT_THAT(run(LaunchMode::op, 1 * us), near({hop, 1 + 5 * hop, 4, 8}));
  EXPECT_THAT(run(LaunchMode::op, 10 * us), near({10, 40 + 2 * hop, 4, 8}));
}

TEST_P(SimulateTest, TwoAtOnceShareTheLink) {
  const auto numbers = times([&] {
    Bench bench;
    const auto result = bench.run(options(LaunchMode::graph, 1, 0),
                                  {{"one", small_ring_of_two(), {}, 0, 0}, {"two", small_ring_of_two(), {}, 0, 1}});
    return std::vector<double>{result.calls.at(0).duration / us, result.calls.at(1).duration / us,
                               result.makespan / us};
  });
  constexpr double shared = 2 * (1 + 2 * slice);
  EXPECT_THAT(numbers, near({shared, shared, shared}));
}

// The second one is issued 1 us after the first and both share the link for 0.048 us in each of their rounds.
TEST_P(SimulateTest, AHostIssuesToItsStreamsInTurn) {
  const auto numbers = times([&] {
    Bench bench(2, 1 * us);
    const auto result = bench.run(options(LaunchMode::op, 1, 0),
                                  {{"one", small_ring_of_two(), {}, 0, 7}, {"two", small_ring_of_two(), {}, 0, 2}});
    return std::vector<double>{result.calls.at(0).start / us, result.calls.at(0).end / us,
                               result.calls.at(1).start / us, result.calls.at(1).end / us};
  });
  EXPECT_THAT(numbers, near({1, 5.096, 2, 6.096}));
}

TEST_P(SimulateTest, GroupsOfTheirOwnAndLaterStarts) {
  const auto numbers = times([&] {
    Bench bench(4);
    const auto result = bench.run(options(LaunchMode::graph, 1, 0), {{"one", small_ring_of_two(), {3, 1}, 0, 0},
                                                                     {"two", small_ring_of_two(), {0, 2}, 5 * us, 0}});
    return std::vector<double>{result.calls.at(0).start / us, result.calls.at(0).end / us,
                               result.calls.at(1).start / us, result.calls.at(1).end / us,
                               static_cast<double>(result.calls.at(1).stats.transfers)};
  });
  EXPECT_THAT(numbers, near({0, two_ring_time, 5, 5 + two_ring_time, 4}));
}

// In op mode the payload goes through the communicator's buffer, at once or in two halves: every byte is read and
// written twice more in HBM.
TEST_P(SimulateTest, OpModeCopiesThroughTheBuffer) {
  for (const Bytes buffer : {Bytes{20480}, Bytes{10240}}) {
    SCOPED_TRACE(fmt::format("buffer of {} bytes", buffer));
    const auto numbers = times([&] {
      Bench bench(2, 1 * us);
      const Operation operation{.ranks = 2, .elements = 5120};
      const auto ring = [](const Operation& window) { return ring_allreduce(window, true); };
      const auto schedule = std::make_shared<const Schedule>(staged(operation, {LaunchMode::op, buffer}, ring));
      const auto result = bench.run(options(LaunchMode::op, 2, 1), {{"ring", schedule}});
      const CollectiveTime& time = result.calls.at(0);
      return std::vector<double>{time.duration / us, time.per_iteration / us, time.stats.copying / us,
                                 static_cast<double>(time.stats.transfers), bench.soc.hbm_bandwidth};
    });
    const double copying = 2 * 2 * 20480 / numbers.at(4) / us;
    const double windows = 20480 / static_cast<double>(buffer);
    const double expected = copying + 2 * (windows + slice);  // alpha in each window
    EXPECT_THAT(numbers, near({expected, expected, copying, 4 * windows, numbers.at(4)}));
  }
}

TEST_P(SimulateTest, EachInAStateOfItsOwn) {
  const std::vector<std::vector<CollectiveCall>> points{
      {{"ring", small_ring_of_two()}},
      {{"one", small_ring_of_two(), {}, 0, 0}, {"two", small_ring_of_two(), {}, 0, 1}},
      {{"ring", small_ring_of_two()}},
  };
  const auto numbers = times([&] {
    Bench bench;
    std::vector<double> seen;
    for (const auto& result :
         simulate_each(bench.cluster, bench.soc, bench.costs, options(LaunchMode::op, 3, 1), points)) {
      for (const CollectiveTime& time : result.calls) {
        seen.insert(seen.end(), {time.start, time.end, time.duration, time.per_iteration, time.stats.last_arrival,
                                 time.stats.last_end, time.stats.busiest_links.at(0).time,
                                 static_cast<double>(time.stats.busiest_links.at(0).link),
                                 static_cast<double>(time.stats.transfers), static_cast<double>(time.stats.payload)});
      }
      seen.insert(seen.end(),
                  {result.makespan, static_cast<double>(result.simulated), static_cast<double>(result.transfers)});
    }
    return seen;
  });
  // The first point and the last are the same simulation, bit for bit.
  constexpr std::size_t fields = 13;
  ASSERT_EQ(numbers.size(), 4 * fields - 3);
  EXPECT_EQ(std::vector<double>(numbers.begin(), numbers.begin() + fields),
            std::vector<double>(numbers.end() - fields, numbers.end()));
  EXPECT_NEAR(numbers[2] / us, two_ring_time, 1e-9);
  EXPECT_EQ(numbers[8], 4);
}

TEST(SimulateCollectives, TheTraceHasTheTasksOnDemand) {
  const auto spans = test::in_child([] {
    Bench bench;
    std::vector<double> counts;
    for (const bool trace : {false, true}) {
      const auto result = bench.run({.trace = trace}, {{"ring", small_ring_of_two()}});
      double reduces = 0;
      double collectives = 0;
      for (const sim::Span& span : result.trace.spans()) {
        if (span.kind == sim::SpanKind::reduce) ++reduces;
        if (span.kind == sim::SpanKind::collective) ++collectives;
      }
      counts.insert(counts.end(), {reduces, collectives});
    }
    return counts;
  });
  EXPECT_EQ(spans, (std::vector<double>{0, 2, 2, 2}));
}

TEST(SimulateCollectives, BadCallsAreRefused) {
  const auto refusal = [](std::vector<CollectiveCall> calls) {
    try {
      (void)test::in_child([&] {
        Bench bench;
        (void)bench.run({}, calls);
        return std::vector<double>{};
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({{"big", chain(3)}}), testing::HasSubstr("big is for 3 ranks"));
  EXPECT_THAT(refusal({{"few", chain(3), {0, 1}}}), testing::HasSubstr("few is for 3 ranks, 2 NPUs are given"));
  EXPECT_THAT(refusal({{"twice", small_ring_of_two(), {1, 1}}}), testing::HasSubstr("NPU 1 takes part twice"));
  EXPECT_THAT(refusal({{"far", small_ring_of_two(), {0, 9}}}), testing::HasSubstr("no NPU 9"));
}

TEST(SimulateCollectives, TheNetworkOfAuto) {
  const auto with = [](Rank ranks, std::uint32_t queues) {
    Schedule schedule;
    schedule.ranks = ranks;
    schedule.queues = queues;
    return std::make_shared<const Schedule>(schedule);
  };
  using sim::NetworkKind;
  EXPECT_EQ(automatic_network({{"", with(64, 16)}}), NetworkKind::simgrid);
  EXPECT_EQ(automatic_network({{"", with(65, 1)}}), NetworkKind::fluid);
  EXPECT_EQ(automatic_network({{"", with(33, 32)}}), NetworkKind::fluid);
  EXPECT_EQ(automatic_network({{"", with(32, 31)}, {"", with(32, 31)}}), NetworkKind::simgrid);
  EXPECT_EQ(automatic_network({{"", with(32, 31), {}, 0, 0}, {"", with(32, 31), {}, 0, 1}}), NetworkKind::fluid);
}

// 1000 elements of 4 B in 1 us among 4 ranks.
TEST(Bandwidth, OfTheBusDependsOnTheCollective) {
  const auto ratio = [](Collective collective) {
    const Operation operation{.ranks = 4, .elements = 1000, .collective = collective};
    const Bandwidth speed = bandwidth_of(operation, 1 * us);
    const double blocks = operation.blocks();
    EXPECT_DOUBLE_EQ(speed.algbw, blocks * 4e9);
    return speed.busbw / speed.algbw;
  };
  EXPECT_DOUBLE_EQ(ratio(Collective::allreduce), 1.5);
  for (const Collective of_blocks : {Collective::reduce_scatter, Collective::allgather, Collective::scatter,
                                     Collective::gather, Collective::alltoall}) {
    EXPECT_DOUBLE_EQ(ratio(of_blocks), 0.75) << name_of(of_blocks);
  }
  for (const Collective whole : {Collective::broadcast, Collective::reduce, Collective::send_recv}) {
    EXPECT_DOUBLE_EQ(ratio(whole), 1) << name_of(whole);
  }
  EXPECT_EQ(bandwidth_of({.ranks = 1, .elements = 10}, 0).busbw, 0);
}

// 10 us: 6 on a link, 1 reducing, 1 copying, which leaves 2 for alpha.
TEST(Bottleneck, IsTheLargestPartOfTheTime) {
  const auto kinds = test::in_child([] {
    Bench bench;
    CollectiveStats stats;
    stats.last_arrival = 5;
    stats.last_end = 15;
    stats.busiest_links = {{0, 6}};
    stats.reducing = 1;
    stats.copying = 1;
    const auto kind = [&](Seconds arrival, Seconds others, Seconds launch) {
      return static_cast<double>(find_bottleneck(stats, bench.cluster, arrival, {others, launch}).kind);
    };
    std::vector<double> seen{kind(5, 0, 0), kind(-2, 0, 0), kind(5, 7, 0), kind(5, 0, 7)};
    stats.busiest_links = {{0, 1}, {1, 1}};
    seen.push_back(kind(5, 0, 0));  // alpha 6
    stats.copying = 5;
    seen.push_back(kind(5, 0, 0));  // alpha 2
    stats.reducing = 6;
    seen.push_back(kind(5, 0, 0));
    stats = {};
    seen.push_back(kind(0, 0, 0));
    return seen;
  });
  std::vector<double> expected;
  for (const BottleneckKind kind :
       {BottleneckKind::link, BottleneckKind::late_rank, BottleneckKind::others, BottleneckKind::launch,
        BottleneckKind::alpha, BottleneckKind::copy, BottleneckKind::reduction, BottleneckKind::none}) {
    expected.push_back(static_cast<double>(kind));
  }
  EXPECT_EQ(kinds, expected);
}

}  // namespace
}  // namespace hcclsim::hccl
