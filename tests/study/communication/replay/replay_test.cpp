#include "study/communication/replay/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "hccl/runtime/simulate.hpp"
#include "study/communication/replay/chakra/write_chakra.hpp"
#include "study/communication/replay/plan_trace.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "study/run/run.hpp"
#include "tests/study/communication/replay/replayed.hpp"
#include "tests/study/run/small_gpt.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using test::chakra_trace;
using test::ChakraNode;
using test::collective_node;
using test::compute_node;
using test::message_time;
using test::receive_node;
using test::refusal;
using test::replayed;
using test::send_node;
using testing::AllOf;
using testing::HasSubstr;

constexpr Seconds us = 1e-6;

ChakraNode on_cpu(ChakraNode node) {
  node.attributes.push_back(test::Message().text(1, "is_cpu_op").varint(27, 1).bytes());
  return node;
}

TEST(Replay, ComputationsGoOneBehindTheOther) {
  // Nodes 1 and 2 are ready at once and share the AI cores; 3 is on the CPU and runs beside them; 4 waits for 2 and 3.
  const ReplayResult result = replayed(chakra_trace(
      {{compute_node(2, 20), compute_node(1, 10), on_cpu(compute_node(3, 50)), compute_node(4, 5, {2, 3})}}));
  EXPECT_DOUBLE_EQ(result.makespan, 55 * us);
  EXPECT_DOUBLE_EQ(result.by_rank[0].computing, 35 * us);
  EXPECT_DOUBLE_EQ(result.by_rank[0].host, 50 * us);
  EXPECT_EQ(result.nodes, 4);
}

TEST(Replay, TheLowestIdGoesFirst) {
  // 1 (10 us), then of 5 and 2, which are ready then, 2 (1 us), behind which 9 waits on the CPU (100 us); then 5 (40
  // us).
  const ReplayResult result = replayed(chakra_trace(
      {{compute_node(1, 10), compute_node(5, 40, {1}), compute_node(2, 1, {1}), on_cpu(compute_node(9, 100, {2}))}}));
  EXPECT_DOUBLE_EQ(result.makespan, 111 * us);
}

TEST(Replay, MessagesTakeTheirWay) {
  const ReplayResult result =
      replayed(chakra_trace({{compute_node(1, 30), send_node(2, 1, 1'000'000, {1})},
                             {receive_node(1, 0, 1'000'000), compute_node(2, 7, {1}), compute_node(3, 200)}}));
  // Node 3 of rank 1 computes from the begin on, and node 2 comes behind it.
  EXPECT_DOUBLE_EQ(result.by_rank[0].end, 30 * us + message_time(1e6));
  EXPECT_DOUBLE_EQ(result.makespan, 207 * us);
  EXPECT_DOUBLE_EQ(result.by_rank[0].exposed, message_time(1e6));
  EXPECT_DOUBLE_EQ(result.by_rank[1].communicating, 30 * us + message_time(1e6));
  EXPECT_NEAR(result.by_rank[1].exposed, 0, 1e-15);
  EXPECT_EQ(result.messages, 1);
}

TEST(Replay, SendsOfARankGoOneBehindTheOtherAndReceivesDoNot) {
  const ReplayResult result =
      replayed(chakra_trace({{send_node(1, 1, 1'000'000), send_node(2, 2, 1'000'000), receive_node(3, 1, 500'000)},
                             {receive_node(1, 0, 1'000'000), send_node(2, 0, 500'000)},
                             {receive_node(1, 0, 1'000'000)}}));
  EXPECT_DOUBLE_EQ(result.by_rank[0].end, 2 * message_time(1e6));
  EXPECT_DOUBLE_EQ(result.by_rank[1].end, message_time(1e6));
  EXPECT_DOUBLE_EQ(result.makespan, 2 * message_time(1e6));
}

TEST(Replay, CollectivesTakeAsLongAsByThemselves) {
  const std::string platform = find_platform("atlas800-9000");
  for (const std::int64_t type : {0, 1, 2, 3, 4, 5, 6, 7, 9}) {
    std::vector<std::vector<ChakraNode>> ranks;
    for (int rank = 0; rank < 8; ++rank) {
      ranks.push_back({compute_node(1, 10 * (static_cast<std::uint64_t>(rank) + 1)),
                       collective_node(2, type, 8 << 20, {1}), compute_node(3, 5, {2})});
    }
    const ReplayResult result = replayed(chakra_trace(ranks), {}, platform);
    sim::Cluster cluster(platform);
    LoadedPlatform loaded({}, {}, obeyed_by_schedules, cluster);
    const ExecutionTrace trace = chakra_trace(ranks);
    TraceSchedules schedules(trace, cluster, loaded.soc, loaded.config, DataType::fp32);
    const auto alone = hccl::simulate_collectives(cluster, loaded.soc, loaded.costs, {},
                                                  {{.name = "one", .schedule = schedules.of(trace.of(0).nodes[1])}});
    // The last rank comes after 80 us. Before that others may have done what does not need it.
    EXPECT_LE(result.makespan, 85 * us + alone.makespan + 1e-12) << type;
    EXPECT_GE(result.makespan, 80 * us + 0.2 * alone.makespan) << type;
    for (auto& nodes : ranks) nodes.front() = compute_node(1, 80);
    const Seconds together = replayed(chakra_trace(ranks), {}, platform).makespan;
    const Seconds rooted_end = together - 85 * us;
    EXPECT_NEAR(rooted_end, alone.makespan - loaded.costs.launch, 1e-9 + loaded.costs.launch) << type;
  }
}

/// Message of the Error(simulated_failure, "deadlock").
std::string stands_still(const ExecutionTrace& trace, const ReplaySpec& spec = {}) {
  try {
    static_cast<void>(replayed(trace, spec));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::simulated_failure);
    EXPECT_EQ(error.kind(), "deadlock");
    return error.what();
  }
  ADD_FAILURE() << "came to its end";
  return {};
}

/// Each rank sends to the next one before it receives.
std::vector<std::vector<ChakraNode>> ring(Rank ranks, std::int64_t bytes) {
  std::vector<std::vector<ChakraNode>> nodes;
  for (Rank rank = 0; rank < ranks; ++rank) {
    nodes.push_back({send_node(1, (rank + 1) % ranks, bytes), receive_node(2, (rank + ranks - 1) % ranks, bytes, {1})});
  }
  return nodes;
}

TEST(Replay, ASendToABufferEndsWhenItsBytesHaveArrived) {
  const auto makespan = [](const ChakraSpec& spec) {
    return replayed(chakra_trace(ring(4, 1'000'000), {}, spec)).makespan;
  };
  EXPECT_DOUBLE_EQ(makespan({}), message_time(1e6));  // of another program than hcclsim
  EXPECT_DOUBLE_EQ(makespan({.sends = ChakraSends::buffered}), message_time(1e6));
  EXPECT_THAT(stands_still(chakra_trace(ring(4, 1'000'000), {}, {.sends = ChakraSends::meeting})),
              HasSubstr("rank 0, node 1 waits for its receive: rank 1, node 2"));
  // The bytes are there long before the receive, which then takes nothing.
  const ReplayResult late =
      replayed(chakra_trace({{send_node(1, 1, 1'000'000)},
                             {compute_node(1, 500), receive_node(2, 0, 1'000'000, {1}), compute_node(3, 5, {2})}}));
  EXPECT_DOUBLE_EQ(late.by_rank[0].end, message_time(1e6));
  EXPECT_DOUBLE_EQ(late.makespan, 505 * us);
}

TEST(Replay, SendsOfHcclsimAndPyTorchWaitForTheirReceives) {
  // Written by hcclsim, the same ring says so in its head; PyTorch's files have process groups.
  const ExecutionTrace trace = chakra_trace(ring(2, 64), {}, {.sends = ChakraSends::meeting});
  const auto read_as = [&](ChakraSends sends) {
    ExecutionTrace read;
    for (Rank rank = 0; rank < 2; ++rank) {
      const std::string bytes = chakra_bytes(trace, rank);
      add_chakra({.bytes = bytes, .name = "t", .rank = rank}, {.sends = sends}, {}, read);
    }
    return read.traces.front().nodes.front().buffered;
  };
  EXPECT_FALSE(read_as(ChakraSends::automatic));
  EXPECT_TRUE(read_as(ChakraSends::buffered));
  std::vector<std::vector<ChakraNode>> of_pytorch = ring(2, 64);
  for (std::vector<ChakraNode>& nodes : of_pytorch) {
    nodes.push_back({.id = 9, .type = test::chakra::metadata, .name = "## process_group:init ##"});
    nodes.back().values = R"([{"pg_name": "1", "ranks": [0, 1]}])";
  }
  EXPECT_FALSE(chakra_trace(of_pytorch).traces.front().nodes.front().buffered);
}

TEST(Replay, TheCpuLaunchesWhatTheDeviceCommunicates) {
  ChakraNode launch = on_cpu(collective_node(1, 0, 1 << 20));
  launch.micros = 12;
  const std::vector<ChakraNode> nodes{launch, collective_node(2, 0, 1 << 20, {1})};
  const ReplayResult result = replayed(chakra_trace({nodes, nodes}));
  EXPECT_DOUBLE_EQ(result.by_rank[0].host, 12 * us);
  ASSERT_EQ(result.collectives.size(), 1);
  EXPECT_EQ(result.collectives.front().calls, 1);
  EXPECT_DOUBLE_EQ(
      result.makespan,
      12 * us + replayed(chakra_trace({{collective_node(2, 0, 1 << 20)}, {collective_node(2, 0, 1 << 20)}})).makespan);
}

TEST(Replay, WhatTakesNoTimeIsSaid) {
  const ReplayResult none = replayed(chakra_trace({{compute_node(1, 0), compute_node(2, 0, {1})}}));
  EXPECT_EQ(none.makespan, 0);
  EXPECT_THAT(none.on.notes, testing::Contains(HasSubstr("2 computations without a duration, operations or bytes")));
  const ReplayResult some = replayed(chakra_trace({{compute_node(1, 0), compute_node(2, 7, {1})}}));
  EXPECT_THAT(some.on.notes, testing::Contains(HasSubstr("1 computation without a duration")));
  EXPECT_THAT(replayed(chakra_trace({{compute_node(1, 3)}})).on.notes,
              testing::Not(testing::Contains(HasSubstr("without"))));
}

TEST(Replay, SettingsOfHcclThatChooseAlgorithmsCountWhereThereAreCollectives) {
  const auto unmodelled = [](const ExecutionTrace& trace) {
    ReplaySpec spec;
    spec.platform.hccl_settings = {{"HCCL_ALGO", "level0:NA;level1:ring", "--hccl-algo"},
                                   {"HCCL_DETERMINISTIC", "true", "--hccl-deterministic"}};
    sim::Cluster cluster(test::hand_platform(2));
    LoadedPlatform loaded({}, spec.platform.hccl_settings, obeyed_by_replays, cluster);
    return replay_on(loaded, spec, trace).on;
  };
  const PlatformFacts with = unmodelled(chakra_trace({{collective_node(1, 0, 64)}, {collective_node(1, 0, 64)}}));
  EXPECT_THAT(with.unmodelled, testing::IsEmpty());
  EXPECT_THAT(with.notes, testing::Contains(HasSubstr("--hccl-algo")));  // there is one server
  EXPECT_THAT(unmodelled(chakra_trace({{compute_node(1, 3)}})).unmodelled,
              testing::ElementsAre("--hccl-algo", "--hccl-deterministic"));
}

TEST(Replay, SixRanksAndSizesThatDoNotDivide) {
  std::vector<std::vector<ChakraNode>> ranks(
      6, {collective_node(1, test::chakra::all_reduce, 1001), collective_node(2, test::chakra::all_gather, 3, {1})});
  const ReplayResult result = replayed(chakra_trace(ranks));
  EXPECT_GT(result.makespan, 0);
  EXPECT_THAT(result.on.notes, testing::Contains(HasSubstr("were rounded up")));
  EXPECT_EQ(result.collectives.size(), 2);
}

TEST(Replay, TheCostModelWhereThereIsNoDuration) {
  ChakraNode node = compute_node(1, 0);
  node.attributes = {test::integer("num_ops", 1'000'000'000'000), test::integer("tensor_size", 1000)};
  const ReplayResult result = replayed(chakra_trace({{node}}));
  // 910A: 32 cores of 8192 operations per cycle at 1 GHz, of which matrix products achieve a part; and t0.
  EXPECT_GT(result.makespan, 1e12 / 256e12);
  EXPECT_LT(result.makespan, 4 * 1e12 / 256e12);
  ChakraNode timed = node;
  timed.micros = 77;
  EXPECT_DOUBLE_EQ(replayed(chakra_trace({{timed}})).makespan, 77 * us);
  EXPECT_DOUBLE_EQ(replayed(chakra_trace({{timed}}), {.settings = {.times = NodeTimes::modelled}}).makespan,
                   result.makespan);
  EXPECT_THAT(refusal("trace", [&] { static_cast<void>(replayed(chakra_trace({{on_cpu(node)}}))); }),
              HasSubstr("there is no cost model of CPUs"));
  ChakraNode load{.id = 1, .type = test::chakra::load, .attributes = {test::integer("tensor_size", 1 << 30)}};
  EXPECT_GT(replayed(chakra_trace({{load}})).by_rank[0].computing, 0);
}

TEST(Replay, DeadlocksAreDiagnosed) {
  // Each rank receives before it sends.
  EXPECT_THAT(stands_still(chakra_trace({{receive_node(1, 1, 8), send_node(2, 1, 8, {1})},
                                         {receive_node(1, 0, 8), send_node(2, 0, 8, {1})}})),
              AllOf(HasSubstr("0 of 4 nodes have ended; nodes wait for each other"),
                    HasSubstr("rank 0, node 1 waits for its send: rank 1, node 2"),
                    HasSubstr("rank 1, node 2 waits for the end of a node: rank 1, node 1"),
                    HasSubstr("rank 1, node 1 waits for its send: rank 0, node 2")));
  // Ranks call collectives of two groups in different order, in one stream.
  const ChakraGroups groups{{"1", {0, 1}}, {"2", {1, 0}}};
  const ExecutionTrace crossed =
      chakra_trace({{collective_node(1, 0, 64, {}, "1"), collective_node(2, 0, 64, {}, "2")},
                    {collective_node(1, 0, 64, {}, "2"), collective_node(2, 0, 64, {}, "1")}},
                   groups);
  EXPECT_THAT(stands_still(crossed),
              AllOf(HasSubstr("rank 0, node 1 waits for rank 1 in the collective: rank 1, node 2"),
                    HasSubstr("rank 1, node 2 is ready, but what it needs is occupied: rank 1, node 1")));
  EXPECT_GT(replayed(crossed, {.settings = {.streams = CommunicationStreams::per_group}}).makespan, 0);
}

TEST(Replay, FaultsChangeTheTime) {
  const ExecutionTrace trace = chakra_trace({{compute_node(1, 100)}, {compute_node(1, 10)}});
  ReplaySpec spec;
  spec.faults = {sim::parse_fault("npu[0].paused from 50us to 80us")};
  EXPECT_DOUBLE_EQ(replayed(trace, spec).makespan, 130 * us);
}

TEST(Replay, TwiceTheSame) {
  std::mt19937 random(7);
  std::vector<std::vector<ChakraNode>> ranks(4);
  for (std::uint64_t id = 1; id < 200; ++id) {
    const std::uint64_t kind = random() % 4;
    for (std::vector<ChakraNode>& rank : ranks) {
      std::vector<std::uint64_t> after;
      if (id > 3) after = {id - 1 - random() % 3};
      if (kind == 0) {
        rank.push_back(collective_node(id, static_cast<std::int64_t>(id % 2) * 2, 4096, {id > 1 ? id - 1 : 0}));
        if (id == 1) rank.back().after.clear();
      } else {
        rank.push_back(compute_node(id, random() % 50, after));
      }
    }
  }
  const ExecutionTrace trace = chakra_trace(ranks);
  const ReplayResult one = replayed(trace);
  const ReplayResult other = replayed(trace);
  EXPECT_EQ(one.makespan, other.makespan);
  for (Rank rank = 0; rank < 4; ++rank) EXPECT_EQ(one.by_rank[rank].exposed, other.by_rank[rank].exposed);
  // Never shorter than the computations of a rank, never longer than all one behind the other.
  EXPECT_GE(one.makespan, one.by_rank[0].computing);
}

/// Ends of steps on the last rank, simulated as a run does, and of what was written, read and replayed.
using Ends = std::vector<std::pair<Seconds, Seconds>>;

Ends ends_of(const RunSpec& spec) {
  return on_experiment(spec, [](Experiment& experiment) {
    const hccl::TimedStep step = experiment.simulate(experiment.training);
    const ExecutionTrace written = trace_of(step.plan, experiment.training);
    ExecutionTrace read;
    ChakraGroups groups;
    for (std::size_t i = 1; i < written.groups.size(); ++i) groups[written.groups[i].name] = written.groups[i].ranks;
    for (Rank rank = 0; rank < written.ranks(); ++rank) {
      const std::string bytes = chakra_bytes(written, rank);
      add_chakra({.bytes = bytes, .name = "written", .rank = rank}, {}, groups, read);
      read.trace_of.push_back(rank);
    }
    read.groups.front() = hccl::world_communicator(written.ranks());
    const ReplayResult result = replay_on(experiment, {}, read);
    Ends ends;
    for (std::size_t i = 0; i < step.iteration_ends.size(); ++i) {
      const std::vector<Seconds>& of_ranks = step.iteration_ends[i];
      ends.emplace_back(*std::max_element(of_ranks.begin(), of_ranks.end()), result.step_ends.at(i));
    }
    return ends;
  });
}

TEST(PlanTrace, AReplayHasTheDatesOfTheStep) {
  std::mt19937 random(20);
  const auto any = [&](const auto& values) { return values[random() % values.size()]; };
  for (int i = 0; i < 10; ++i) {
    RunSpec spec = small_gpt(any(std::array<std::string, 3>{test::write_platform({.npus_per_server = 6}),
                                                            test::write_platform({.servers = 2, .npus_per_server = 3}),
                                                            std::string("atlas800t-a2")}),
                             twelve_layers);
    spec.npus = 6;
    spec.simulation.iterations = 3;
    spec.parallel.optimizer = hccl::parse_optimizer_parallel(any(std::array{"off", "zero1", "zero3"}));
    spec.optimizer = models::Optimizer::adam;
    spec.step.shape.stages = any(std::array{1U, 2U, 3U});
    spec.parallel.micro_batches = spec.step.shape.stages > 1 ? 4 : any(std::array{1U, 4U});
    spec.step.hcom_parallel = random() % 2 == 0;
    if (random() % 2 == 0) spec.step.framework = Framework::tensorflow;
    const Ends ends = ends_of(spec);
    ASSERT_EQ(ends.size(), 3) << i;
    for (const auto& [simulated, of_replay] : ends) EXPECT_NEAR(of_replay, simulated, 1e-10 * simulated) << i;
  }
}

TEST(PlanTrace, CollectivesOfOneRankTakeNoTime) {
  for (const Rank stages : {1U, 4U}) {  // of one replica
    RunSpec spec = small_gpt(test::write_platform({.npus_per_server = 4}), twelve_layers);
    spec.npus = stages;
    spec.step.shape.stages = stages;
    spec.parallel.micro_batches = stages;
    spec.simulation.iterations = 2;
    const Ends ends = ends_of(spec);
    ASSERT_EQ(ends.size(), 2);
    for (const auto& [simulated, of_replay] : ends) EXPECT_NEAR(of_replay, simulated, 1e-10 * simulated) << stages;
  }
}

TEST(PlanTrace, WhatATraceCannotCarry) {
  const auto refused = [](hccl::StepSpec step, hccl::SimulationOptions simulation = {}) {
    return refusal("unsupported", [&] { require_traceable({{}, std::move(step), std::move(simulation)}); });
  };
  EXPECT_THAT(refused({.launch = hccl::LaunchMode::op}), HasSubstr("a trace cannot carry --launch op"));
  EXPECT_THAT(refused({.host_launch = 1e-6}), HasSubstr("eager execution"));
  EXPECT_THAT(refused({.allreduce = hccl::Algorithm::ring}), HasSubstr("an algorithm that is asked for"));
  EXPECT_THAT(refused({}, {.hbm_contention = true}), HasSubstr("--hbm-contention on"));
}

}  // namespace
}  // namespace hcclsim::study
