#include "hccl/runtime/simulate.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "device/soc.hpp"
#include "hccl/collective/algorithm/builder.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/collective/staging.hpp"
#include "hccl/runtime/bandwidth.hpp"
#include "hccl/runtime/collective/bottleneck.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "sim/platform/edit.hpp"
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
    costs.issue.base = launch;
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
};
INSTANTIATE_TEST_SUITE_P(Simulate, SimulateTest, testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid),
                         [](const auto& info) { return std::string(sim::name_of(info.param)); });

constexpr double not_compared = std::numeric_limits<double>::quiet_NaN();

/// What tests compare of a call; times in us.
struct Call {
  double start = not_compared;
  double end = not_compared;
  double duration = not_compared;
  double per_iteration = not_compared;
  double copying = not_compared;
  double on_links = not_compared;
  double transfers = not_compared;
  double payload = not_compared;
};

/// What tests compare of a simulation of one or two calls; times in us.
struct Simulated {
  Call first{};
  Call second{};
  double makespan = not_compared;
  double simulated = not_compared;
  double transfers = not_compared;
};

Call figures_of(const CollectiveTime& call) {
  const PathTime& path = call.stats.path;
  return {.start = call.start / us,
          .end = call.end / us,
          .duration = call.duration / us,
          .per_iteration = call.per_iteration / us,
          .copying = path.copying / us,
          .on_links = (path.beta() + path.sharing) / us,
          .transfers = static_cast<double>(call.stats.transfers),
          .payload = static_cast<double>(call.stats.payload)};
}

Simulated figures_of(const SimulatedCollectives& result) {
  return {.first = figures_of(result.calls.front()),
          .second = figures_of(result.calls.back()),
          .makespan = result.makespan / us,
          .simulated = static_cast<double>(result.simulated),
          .transfers = static_cast<double>(result.transfers)};
}

/// Compares the figures that are given.
void expect_near(const Simulated& found, const Simulated& expected) {
  const auto compare = [](const std::string& name, double figure, double wanted) {
    if (std::isnan(wanted)) return;
    EXPECT_NEAR(figure, wanted, 1e-9) << name;
  };
  const auto compare_call = [&](const std::string& name, const Call& figures, const Call& wanted) {
    compare(name + "start", figures.start, wanted.start);
    compare(name + "end", figures.end, wanted.end);
    compare(name + "duration", figures.duration, wanted.duration);
    compare(name + "per_iteration", figures.per_iteration, wanted.per_iteration);
    compare(name + "copying", figures.copying, wanted.copying);
    compare(name + "on_links", figures.on_links, wanted.on_links);
    compare(name + "transfers", figures.transfers, wanted.transfers);
    compare(name + "payload", figures.payload, wanted.payload);
  };
  compare_call("first.", found.first, expected.first);
  compare_call("second.", found.second, expected.second);
  compare("makespan", found.makespan, expected.makespan);
  compare("simulated", found.simulated, expected.simulated);
  compare("transfers", found.transfers, expected.transfers);
}

TEST_P(SimulateTest, ACollectiveAlone) {
  const Simulated found = test::in_child([&] {
    Bench bench;
    return figures_of(bench.run(options(LaunchMode::graph, 1, 0), {{"ring", small_ring_of_two()}}));
  });
  expect_near(found, {.first = {.start = 0,
                                .end = two_ring_time,
                                .duration = two_ring_time,
                                .per_iteration = two_ring_time,
                                .on_links = 2 * slice,
                                .transfers = 4,
                                .payload = 20480},
                      .makespan = two_ring_time,
                      .transfers = 4});
}

// Calls back to back: the host issues the next one while the device works.
TEST_P(SimulateTest, BackToBackCostsTheLargerOfDeviceAndHost) {
  const auto run = [&](LaunchMode mode, Seconds launch, std::uint32_t iterations, std::uint32_t warmups) {
    return test::in_child([&] {
      Bench bench(2, launch);
      return figures_of(bench.run(options(mode, iterations, warmups), {{"ring", small_ring_of_two()}}));
    });
  };
  expect_near(run(LaunchMode::graph, 9 * us, 4, 2),
              {.first = {.per_iteration = two_ring_time}, .makespan = 6 * two_ring_time, .simulated = 1});
  expect_near(run(LaunchMode::op, 3 * us, 3, 1),
              {.first = {.per_iteration = two_ring_time}, .makespan = 3 + 4 * two_ring_time, .simulated = 1});
  expect_near(run(LaunchMode::op, 3 * us, 2, 0),
              {.first = {.per_iteration = 1.5 + two_ring_time}, .makespan = 3 + 2 * two_ring_time, .simulated = 1});
  expect_near(run(LaunchMode::op, 10 * us, 3, 1),
              {.first = {.per_iteration = 10}, .makespan = 40 + two_ring_time, .simulated = 1});
}

// The same without the argument that iterations are equal: two calls per iteration.
TEST_P(SimulateTest, WhatIsSimulatedOnceEqualsAllIterations) {
  const auto run = [&](LaunchMode mode, Seconds launch) {
    return test::in_child([&] {
      Bench bench(2, launch);
      return figures_of(bench.run(options(mode, 2, 1), {{"one", small_ring_of_two()}, {"two", small_ring_of_two()}}));
    });
  };
  expect_near(run(LaunchMode::graph, 9 * us), {.first = {.per_iteration = 2 * two_ring_time},
                                               .second = {.end = 6 * two_ring_time, .duration = two_ring_time},
                                               .makespan = 6 * two_ring_time,
                                               .simulated = 3});
  expect_near(run(LaunchMode::op, 3 * us), {.first = {.per_iteration = 2 * two_ring_time},
                                            .second = {.end = 3 + 6 * two_ring_time, .duration = two_ring_time},
                                            .makespan = 3 + 6 * two_ring_time,
                                            .simulated = 3});
  expect_near(run(LaunchMode::op, 10 * us), {.first = {.per_iteration = 20},
                                             .second = {.end = 60 + two_ring_time, .duration = two_ring_time},
                                             .makespan = 60 + two_ring_time,
                                             .simulated = 3});
}

// The same for algorithms on a real topology, where only some end on all ranks at once. A second call, which does
// nothing, keeps the iterations from being taken as equal unseen.
TEST_P(SimulateTest, EqualIterationsAreEqualOnAServerToo) {
  const auto run = [&](Algorithm algorithm, LaunchMode launch, bool all) {
    return test::in_child([&] {
      sim::Cluster cluster(std::string(HCCLSIM_PLATFORM_DIR) + "/atlas800-9000.xml");
      std::vector<std::string> notes;
      const device::Soc soc = device::resolve_soc(cluster, 0, notes);
      const device::TaskCosts costs = device::read_task_costs(cluster, notes);
      const Topology topology = topology_of(world_communicator(8), cluster);
      const auto schedule = make_collective({{.ranks = 8, .elements = 1 << 20}, algorithm}, topology, soc);
      const auto nothing = std::make_shared<const Schedule>(ring_allreduce({.ranks = 1, .elements = 1}, true));
      std::vector<CollectiveCall> calls{{"one", schedule}};
      if (all) calls.push_back({"nothing", nothing, {}, 0, 1});
      return figures_of(simulate_collectives(cluster, soc, costs, options(launch, 3, 2), calls));
    });
  };
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::multi_ring, Algorithm::halving_doubling, Algorithm::mesh_two_shot}) {
    SCOPED_TRACE(name_of(algorithm));
    const bool equal = algorithm == Algorithm::multi_ring || algorithm == Algorithm::halving_doubling;
    const Simulated once = run(algorithm, LaunchMode::graph, false);
    const Simulated each = run(algorithm, LaunchMode::graph, true);
    EXPECT_EQ(once.simulated, equal ? 1 : 5);
    EXPECT_EQ(each.simulated, 5);
    EXPECT_NEAR(once.first.per_iteration, each.first.per_iteration, 1e-9 * each.first.per_iteration);
    EXPECT_EQ(run(algorithm, LaunchMode::op, false).simulated, 5);  // tasks start as they are issued
  }
}

// Ranks that end early begin the next iteration early: the chain becomes a pipeline with one transfer per iteration.
TEST_P(SimulateTest, IterationsOverlapWhereRanksEndAtDifferentDates) {
  const auto run = [&](LaunchMode mode, Seconds launch) {
    return test::in_child([&] {
      Bench bench(3, launch);
      return figures_of(bench.run(options(mode, 3, 1), {{"chain", chain(3)}}));
    });
  };
  constexpr double hop = 1 + slice;
  expect_near(run(LaunchMode::graph, 0),
              {.first = {.per_iteration = hop}, .makespan = 5 * hop, .simulated = 4, .transfers = 8});
  expect_near(run(LaunchMode::op, 1 * us),
              {.first = {.per_iteration = hop}, .makespan = 1 + 5 * hop, .simulated = 4, .transfers = 8});
  expect_near(run(LaunchMode::op, 10 * us),
              {.first = {.per_iteration = 10}, .makespan = 40 + 2 * hop, .simulated = 4, .transfers = 8});
}

TEST_P(SimulateTest, TwoAtOnceShareTheLink) {
  const Simulated found = test::in_child([&] {
    Bench bench;
    return figures_of(bench.run(options(LaunchMode::graph, 1, 0),
                                {{"one", small_ring_of_two(), {}, 0, 0}, {"two", small_ring_of_two(), {}, 0, 1}}));
  });
  constexpr double shared = 2 * (1 + 2 * slice);
  expect_near(found, {.first = {.duration = shared}, .second = {.duration = shared}, .makespan = shared});
}

// The second one is issued 1 us after the first and both share the link for 0.048 us in each of their rounds.
TEST_P(SimulateTest, AHostIssuesToItsStreamsInTurn) {
  const Simulated found = test::in_child([&] {
    Bench bench(2, 1 * us);
    return figures_of(bench.run(options(LaunchMode::op, 1, 0),
                                {{"one", small_ring_of_two(), {}, 0, 7}, {"two", small_ring_of_two(), {}, 0, 2}}));
  });
  expect_near(found, {.first = {.start = 1, .end = 5.096}, .second = {.start = 2, .end = 6.096}});
}

TEST_P(SimulateTest, GroupsOfTheirOwnAndLaterStarts) {
  const Simulated found = test::in_child([&] {
    Bench bench(4);
    return figures_of(bench.run(options(LaunchMode::graph, 1, 0), {{"one", small_ring_of_two(), {3, 1}, 0, 0},
                                                                   {"two", small_ring_of_two(), {0, 2}, 5 * us, 0}}));
  });
  expect_near(found, {.first = {.start = 0, .end = two_ring_time},
                      .second = {.start = 5, .end = 5 + two_ring_time, .transfers = 4}});
}

// In op mode the payload goes through the communicator's buffer, at once or in two halves: every byte is read and
// written twice more in HBM.
TEST_P(SimulateTest, OpModeCopiesThroughTheBuffer) {
  for (const Bytes buffer : {Bytes{20480}, Bytes{10240}}) {
    SCOPED_TRACE(fmt::format("buffer of {} bytes", buffer));
    struct OnSoc {
      Simulated simulated;
      double hbm_bandwidth = 0;
    };
    const OnSoc found = test::in_child([&]() -> OnSoc {
      Bench bench(2, 1 * us);
      const Operation operation{.ranks = 2, .elements = 5120};
      const auto ring = [](const Operation& window) { return ring_allreduce(window, true); };
      const auto schedule = std::make_shared<const Schedule>(staged(operation, {LaunchMode::op, buffer}, ring));
      return {figures_of(bench.run(options(LaunchMode::op, 2, 1), {{"ring", schedule}})), bench.soc.hbm_bandwidth};
    });
    const double copying = 2 * 2 * 20480 / found.hbm_bandwidth / us;
    const double windows = 20480 / static_cast<double>(buffer);
    const double expected = copying + 2 * (windows + slice);  // alpha in each window
    expect_near(
        found.simulated,
        {.first = {.duration = expected, .per_iteration = expected, .copying = copying, .transfers = 4 * windows}});
  }
}

TEST_P(SimulateTest, EachInAStateOfItsOwn) {
  const std::vector<std::vector<CollectiveCall>> points{
      {{"ring", small_ring_of_two()}},
      {{"one", small_ring_of_two(), {}, 0, 0}, {"two", small_ring_of_two(), {}, 0, 1}},
      {{"ring", small_ring_of_two()}},
  };
  // Of each point: ten figures of each of its calls, and three of the whole.
  const auto numbers = test::in_child([&] {
    Bench bench;
    std::vector<double> seen;
    for (const auto& result :
         simulate_each(bench.cluster, bench.soc, bench.costs, options(LaunchMode::op, 3, 1), points)) {
      for (const CollectiveTime& time : result.calls) {
        seen.insert(seen.end(), {time.start, time.end, time.duration, time.per_iteration, time.stats.last_arrival,
                                 time.stats.last_end, time.stats.path.on_links.at(0),
                                 static_cast<double>(time.stats.path.links.at(0)),
                                 static_cast<double>(time.stats.transfers), static_cast<double>(time.stats.payload)});
      }
      seen.insert(seen.end(),
                  {result.makespan, static_cast<double>(result.simulated), static_cast<double>(result.transfers)});
    }
    return seen;
  });
  // The first point and the last are the same simulation, bit for bit.
  constexpr std::size_t of_call = 10;
  constexpr std::size_t of_one_call = of_call + 3;
  constexpr std::size_t of_two_calls = 2 * of_call + 3;
  ASSERT_EQ(numbers.size(), of_one_call + of_two_calls + of_one_call);
  EXPECT_EQ(std::vector<double>(numbers.begin(), numbers.begin() + of_one_call),
            std::vector<double>(numbers.end() - of_one_call, numbers.end()));
  constexpr std::size_t duration = 2;
  constexpr std::size_t transfers = 8;
  EXPECT_NEAR(numbers[duration] / us, two_ring_time, 1e-9);
  EXPECT_EQ(numbers[transfers], 4);
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
    stats.path = {.start = 5, .end = 15, .on_links = {6}, .reducing = 1, .copying = 1};
    const auto kind = [&](Seconds arrival, Seconds others, Seconds launch) {
      return static_cast<double>(find_bottleneck(stats, bench.cluster, arrival, {others, launch}).kind);
    };
    std::vector<double> seen{kind(5, 0, 0), kind(-2, 0, 0), kind(5, 7, 0), kind(5, 0, 7)};
    stats.path.on_links = {1, 1};
    seen.push_back(kind(5, 0, 0));  // alpha 6
    stats.path.copying = 5;
    seen.push_back(kind(5, 0, 0));  // alpha 2
    stats.path.reducing = 6;
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

// A chain over three links of 10 GB/s, 1.024 us and 1 us of latency each, and one that waits for them all.
TEST(Bottleneck, IsTheLinkThatThePathWaitsFor) {
  const auto name = [](const std::string& slow, Bytes bytes) {
    return run_in_child([&] {
      test::TestPlatform four{.npus_per_server = 4};
      four.properties = test::no_task_costs();
      const sim::EditedPlatform edited(test::write_platform(four), std::vector{sim::parse_platform_edit(slow)});
      sim::Cluster cluster(edited.path());
      std::vector<std::string> notes;
      const device::TaskCosts costs = device::read_task_costs(cluster, notes);
      const auto schedule = std::make_shared<const Schedule>(ring_allreduce({4, bytes / 4}, true));
      const SimulatedCollectives result =
          simulate_collectives(cluster, device::resolve_soc(cluster, 0, notes), costs, {}, {{"ring", schedule}});
      return bottleneck_of(result.calls.front(), cluster, 0).name;
    });
  };
  EXPECT_EQ(name("link[inner-1-2*].bandwidth=5GBps", 4'000'000), "hccs inner-1-2_UP");
  EXPECT_EQ(name("link[inner-2-3*].bandwidth=5GBps", 4'000'000), "hccs inner-2-3_UP");
  EXPECT_EQ(name("link[inner-2-3*].bandwidth=5GBps", 4'000), "alpha");
}

}  // namespace
}  // namespace hcclsim::hccl
