#include "hccl/collective/selection/selection.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/support/collectives/collective_result.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// What is chosen where (HCCL's graph mode), and what is refused.
namespace hcclsim::hccl {
namespace {

device::Soc soc(const std::string& name) {
  std::vector<std::string> notes;
  return device::find_soc(name, notes);
}

Topology whole_servers(Rank servers, Rank inside) {
  return {.ranks = servers * inside,
          .servers = servers,
          .ranks_per_server = inside,
          .whole_servers = true,
          .between = sim::Transport::rdma};
}

std::shared_ptr<const Schedule> schedule_of(const std::string& soc_name, const Topology& topology, Bytes payload,
                                            Algorithm algorithm, DataType type = DataType::fp32,
                                            LaunchMode launch = LaunchMode::graph) {
  const Operation operation{.ranks = topology.ranks, .elements = payload / size_of(type), .type = type};
  return make_collective({.operation = operation, .algorithm = algorithm, .launch = launch}, topology, soc(soc_name));
}

std::string chosen(const std::string& soc_name, const Topology& topology, Bytes payload,
                   Algorithm algorithm = Algorithm::automatic) {
  return schedule_of(soc_name, topology, payload, algorithm)->algorithm;
}

constexpr Bytes kib = 1024;
constexpr Bytes mib = 1024 * kib;

TEST(Selection, InOneServerItFollowsChipRanksAndSize) {
  EXPECT_EQ(chosen("910A", whole_servers(1, 8), mib), "multi-ring");
  EXPECT_EQ(chosen("910A", whole_servers(1, 4), mib), "mesh-two-shot");
  EXPECT_EQ(chosen("910A", whole_servers(1, 2), mib), "ring");
  EXPECT_EQ(chosen("910B1", whole_servers(1, 8), 64 * kib), "mesh-one-shot");
  EXPECT_EQ(chosen("910B1", whole_servers(1, 8), 64 * kib + 4), "mesh-two-shot");
  Topology part = whole_servers(1, 8);
  part.whole_servers = false;
  EXPECT_EQ(chosen("910A", part, mib), "ring");
}

std::string chosen_in_op_mode(const std::string& soc_name, const Topology& topology, Bytes payload) {
  return schedule_of(soc_name, topology, payload, Algorithm::automatic, DataType::fp32, LaunchMode::op)->algorithm;
}

TEST(Selection, OpModeHasThresholdsOfItsOwn) {
  EXPECT_EQ(chosen_in_op_mode("910A", whole_servers(1, 8), mib), "halving-doubling");
  EXPECT_EQ(chosen_in_op_mode("910A", whole_servers(1, 8), mib + 4), "multi-ring");
  EXPECT_EQ(chosen_in_op_mode("910A", whole_servers(1, 4), mib), "halving-doubling");
  EXPECT_EQ(chosen_in_op_mode("910A", whole_servers(1, 4), mib + 4), "mesh-two-shot");
  EXPECT_EQ(chosen_in_op_mode("910A", whole_servers(1, 2), kib), "ring");
  EXPECT_EQ(chosen_in_op_mode("910A", whole_servers(2, 4), kib), "hierarchical(mesh, halving-doubling)");
  EXPECT_EQ(chosen_in_op_mode("910B1", whole_servers(1, 8), 256 * kib), "mesh-one-shot");
  EXPECT_EQ(chosen_in_op_mode("910B1", whole_servers(1, 8), 256 * kib + 4), "mesh-two-shot");
}

TEST(Selection, TheLaunchModeDecidesThroughWhichMemoryItGoes) {
  const auto ccl = [](LaunchMode launch) {
    return schedule_of("910A", whole_servers(1, 8), 256 * mib, Algorithm::ring, DataType::fp32, launch)->ccl;
  };
  EXPECT_EQ(ccl(LaunchMode::graph), 0U);
  EXPECT_EQ(ccl(LaunchMode::op), 200 * mib);
}

TEST(Selection, BetweenServersItFollowsTheirNumberAndTheCosts) {
  EXPECT_EQ(chosen("910A", whole_servers(4, 8), mib), "hierarchical(multi-ring, halving-doubling)");
  EXPECT_EQ(chosen("910A", whole_servers(3, 8), mib), "hierarchical(multi-ring, ring)");
  // Two servers cost the same either way, and the ring wins ties; four take 6 steps in a ring, 4 in NHR and in
  // halving-doubling, and NHR comes first.
  EXPECT_EQ(chosen("910B1", whole_servers(2, 8), mib), "hierarchical(mesh, ring)");
  EXPECT_EQ(chosen("910B1", whole_servers(4, 8), mib), "hierarchical(mesh, nhr)");
  // Three: 4 steps in a ring and as many in NHR.
  EXPECT_EQ(chosen("910B1", whole_servers(3, 8), mib), "hierarchical(mesh, ring)");
  // Five: 8 steps in a ring, 6 in NHR, which carries as many bytes.
  EXPECT_EQ(chosen("910B1", whole_servers(5, 8), 8 * 1200000), "hierarchical(mesh, nhr)");
  EXPECT_EQ(chosen("910A", {.ranks = 5, .servers = 2}, mib), "ring");
}

/// A3 servers in super-pods of so many of them.
Topology super_pods(const std::vector<Rank>& servers, Rank inside) {
  Topology topology = whole_servers(std::accumulate(servers.begin(), servers.end(), Rank{0}), inside);
  topology.between = sim::Transport::sdma;
  topology.super_pods = servers;
  return topology;
}

std::vector<Topology> some_super_pods() {
  return {super_pods({2, 2}, 2), super_pods({1, 1, 1}, 2), super_pods({2, 4}, 1), super_pods({1, 2}, 3)};
}

Selection selected(const Topology& topology, Collective collective, const char* algo = "") {
  CollectiveRequest request{.operation = {.ranks = topology.ranks, .elements = 1U << 20U, .collective = collective}};
  request.config.algo = parse_algo_setting(algo);
  return select(request, topology, soc("Ascend910_9391"));
}

std::string levels_of(const Topology& topology, Collective collective, const char* algo = "") {
  std::string text;
  for (const HierarchyLevel& level : selected(topology, collective, algo).levels) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", level.size, name_of(level.algorithm));
  }
  return text;
}

// Level 2 by itself: the ring among 3, 5, 6 and 7, else halving-doubling, and NHR where HCCL has neither.
TEST(Selection, SuperPodsAreAThirdLevel) {
  using enum Collective;
  EXPECT_EQ(levels_of(super_pods({2, 2}, 16), allreduce), "16:multi-ring,2:ring,2:halving-doubling");
  EXPECT_EQ(levels_of(super_pods({3, 3, 3}, 16), allreduce), "16:multi-ring,3:ring,3:ring");
  EXPECT_EQ(levels_of(super_pods({2, 2, 2, 2, 2, 2, 2, 2, 2}, 16), allreduce),
            "16:multi-ring,2:ring,9:halving-doubling");
  EXPECT_EQ(levels_of(super_pods({2, 2}, 16), reduce_scatter), "16:multi-ring,2:ring,2:nhr");
  EXPECT_EQ(levels_of(super_pods({2, 2, 2}, 16), allgather), "16:multi-ring,2:ring,3:ring");
  EXPECT_EQ(levels_of(super_pods({2, 2, 2}, 16), broadcast), "16:multi-ring,2:nhr,3:nhr");
  EXPECT_EQ(levels_of(super_pods({2, 2, 2}, 16), reduce), "16:multi-ring,2:ring,3:ring");
  EXPECT_EQ(levels_of(super_pods({4, 4}, 16), scatter), "16:multi-ring,4:ring,2:nhr");
  EXPECT_EQ(selected(super_pods({3, 3, 3}, 16), allreduce).rule,
            "3 super-pods of 3 servers with 16 NPUs each make three levels; ring between servers: HCCL estimates, with "
            "60 us a step and 20 GB/s for 262144 bytes, ring 257.5 us, nhr 257.5 us, halving-doubling 279.3 us; the "
            "first of equal ones wins; ring between super-pods: 3 super-pods are fewer than 8 and no power of two");
}

TEST(Selection, ServersOfASuperPodOfTheirOwnAreLevel2) {
  EXPECT_EQ(levels_of(super_pods({1, 1, 1}, 16), Collective::allreduce, "level1:NB;level2:NHR"), "16:multi-ring,3:nhr");
  EXPECT_EQ(selected(super_pods({1, 1}, 16), Collective::allreduce).rule,
            "2 super-pods of a server with 16 NPUs each make two levels; halving-doubling between super-pods: 2 "
            "super-pods are a power of two");
}

// HCCL's NHR-HCF: groups of two servers in super-pods of two and four.
TEST(Selection, SuperPodsOfDifferentSizesFormGroupsOfTheirCommonDivisor) {
  EXPECT_EQ(levels_of(super_pods({2, 4}, 16), Collective::allreduce), "16:multi-ring,2:ring,3:ring");
  EXPECT_THAT(
      selected(super_pods({2, 4}, 16), Collective::allreduce).rule,
      testing::StartsWith("2 super-pods of 2, 4 servers, in groups of 2 with 16 NPUs each make three levels; "));
  EXPECT_EQ(levels_of(super_pods({2, 3}, 16), Collective::allreduce), "16:multi-ring,5:ring");
}

TEST(Selection, AnAlltoallGoesOverTwoLevelsWhereHcclStagesIt) {
  const auto of = [](const std::string& name, const Topology& topology, const char* algo = "") {
    CollectiveRequest request{.operation = {.ranks = topology.ranks, .elements = 64}};
    request.operation.collective = Collective::alltoall;
    request.operation.in_place = false;
    request.config.algo = parse_algo_setting(algo);
    return make_collective(request, topology, soc(name))->algorithm;
  };
  EXPECT_EQ(of("910B1", whole_servers(2, 8)), "hierarchical(mesh, pairwise)");
  EXPECT_EQ(of("910A", whole_servers(2, 8)), "hierarchical(pairwise, pairwise)");
  EXPECT_EQ(of("910B1", whole_servers(2, 8), "alltoall=level1:pairwise"), "pairwise");
  EXPECT_EQ(of("910B1", whole_servers(8, 1)), "pairwise");
  EXPECT_EQ(of("910B1", {.ranks = 5, .servers = 2}), "pairwise");
  EXPECT_EQ(of("Ascend910_9391", whole_servers(2, 16)), "pairwise");
  EXPECT_EQ(of("910B1", whole_servers(1, 8), "alltoall=level1:pairwise"), "mesh");
  EXPECT_THAT([&] { (void)of("910B1", whole_servers(2, 8), "level1:pipeline"); },
              testing::ThrowsMessage<Error>(
                  testing::StrEq("HCCL_ALGO level1:pipeline is not simulated for alltoall; use pairwise")));
}

TEST(Selection, HcclAlgoDecidesOnBothLevels) {
  const Topology pods = super_pods({2, 2, 2}, 4);
  EXPECT_EQ(levels_of(pods, Collective::allreduce, "level1:NHR;level2:NB"), "4:multi-ring,2:nhr,3:nb");
  EXPECT_EQ(levels_of(pods, Collective::reduce_scatter, "allreduce=level2:NB/reducescatter=level1:NB;level2:ring"),
            "4:multi-ring,2:nb,3:ring");
  EXPECT_EQ(selected(pods, Collective::allreduce, "level1:AHC;level2:NB").algorithm, Algorithm::ahc);
  EXPECT_THAT([&] { (void)selected(pods, Collective::allgather, "level2:pipeline"); },
              testing::ThrowsMessage<Error>(
                  testing::StrEq("HCCL_ALGO level2:pipeline is not simulated for allgather; use ring or NHR or NB")));
}

TEST(Selection, ReductionsOfACoreAppearWhereTheChipHasNone) {
  const auto core_reductions = [](DataType type) {
    const auto schedule = schedule_of("910A", whole_servers(1, 2), 4000, Algorithm::ring, type);
    int count = 0;
    for (const Loop& loop : schedule->stages.at(0).strands.at(0).loops) {
      for (const Task& task : loop.tasks) count += task.kind == TaskKind::reduce && task.by_core ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(core_reductions(DataType::fp32), 0);
  EXPECT_EQ(core_reductions(DataType::fp16), 1);
}

void expect_refused(const std::string& soc_name, const Topology& topology, Algorithm algorithm,
                    const std::string& part) {
  try {
    (void)chosen(soc_name, topology, mib, algorithm);
    ADD_FAILURE() << "accepted, expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), testing::EndsWith(part));
  }
}

TEST(Selection, WhatCannotWorkIsRefusedWithAWayOut) {
  using enum Algorithm;
  expect_refused("910A", whole_servers(1, 8), hierarchical, "8 NPUs on 1 server; use ring");
  expect_refused("910A", {.ranks = 5, .servers = 2}, hierarchical, "5 NPUs on 2 servers; use ring");
  expect_refused("910A", whole_servers(2, 8), multi_ring, "use ring or hierarchical");
  expect_refused("910B1", whole_servers(1, 8), multi_ring, "8 NPUs Ascend910B1 on 1 server; use ring");
  // 910A: 2048 streams, 1024 notifies.
  EXPECT_EQ(chosen("910A", whole_servers(64, 8), mib, mesh_one_shot), "mesh-one-shot");
  expect_refused(
      "910A", whole_servers(128, 8), mesh_one_shot,
      "needs 1023 streams and 2046 notifies on each, Ascend910A has 2048 and 1024; use ring or hierarchical");
  expect_refused("910A", whole_servers(512, 8), mesh_two_shot,
                 "Ascend910A has 2048 and 1024; use ring or hierarchical");
}

// Of alltoall neither the ring nor the levels exist.
TEST(Selection, TheWayOutIsOneOfTheCollective) {
  CollectiveRequest request{.operation = {.ranks = 800, .elements = 64, .collective = Collective::alltoall},
                            .algorithm = Algorithm::mesh};
  try {
    (void)make_collective(request, whole_servers(100, 8), soc("910A"));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::EndsWith("; use pairwise or hierarchical"));
  }
}

// HCCL's own choice for A2 in op mode is the pipeline.
TEST(Selection, HierarchicalIsObeyedWhereHcclWouldTakeThePipeline) {
  CollectiveRequest request{.operation = {.ranks = 16, .elements = 1ULL << 28U}, .launch = LaunchMode::op};
  EXPECT_EQ(select(request, whole_servers(2, 8), soc("910B1")).algorithm, Algorithm::pipeline);
  request.algorithm = Algorithm::hierarchical;
  const Selection selection = select(request, whole_servers(2, 8), soc("910B1"));
  EXPECT_EQ(selection.algorithm, Algorithm::hierarchical);
  EXPECT_EQ(selection.levels.front().algorithm, Algorithm::mesh);
  request.config.algo = parse_algo_setting("level0:NA;level1:pipeline");
  EXPECT_THROW((void)select(request, whole_servers(2, 8), soc("910B1")), Error);
}

TEST(Selection, TheRuleIsSaidWithItsFigures) {
  const auto rule = [](const std::string& name, const Topology& topology, Bytes payload,
                       Algorithm algorithm = Algorithm::automatic, const char* algo = "") {
    CollectiveRequest request{.operation = {.ranks = topology.ranks, .elements = payload / 4}, .algorithm = algorithm};
    request.config.algo = parse_algo_setting(algo);
    return select(request, topology, soc(name)).rule;
  };
  EXPECT_EQ(rule("910A", whole_servers(1, 8), mib), "HCCL's four rings use all links of a whole server of eight 910A");
  EXPECT_EQ(rule("910A", whole_servers(1, 4), mib), "HCCL takes the mesh for four 910A");
  EXPECT_EQ(rule("910A", whole_servers(1, 2), mib), "HCCL takes one ring for 2 910A of a server");
  EXPECT_EQ(rule("910B1", whole_servers(1, 8), 64 * kib),
            "up to 65536 bytes HCCL on A2 reads everything at once in graph mode");
  EXPECT_EQ(rule("910B1", whole_servers(1, 8), mib),
            "beyond 65536 bytes HCCL on A2 takes the mesh in two shots in graph mode");
  EXPECT_EQ(rule("910B1", whole_servers(1, 8), mib, Algorithm::ring), "it was asked for");
  EXPECT_EQ(rule("910A", {.ranks = 5, .servers = 2}, mib),
            "the servers' numbers of NPUs differ, or ranks are not numbered server by server");
  EXPECT_EQ(rule("910A", whole_servers(3, 8), mib),
            "3 servers with 8 NPUs each make two levels; ring between servers: 3 servers are no power of two");
  EXPECT_EQ(rule("910A", whole_servers(3, 8), mib, Algorithm::hierarchical, "level1:H-D_R"),
            "it was asked for; halving-doubling between servers: HCCL_ALGO says level1:H-D_R");
  // 1.2 MB: ring 8 · 60 us + 1.6 · 60 us, NHR 6 · 60 us + 1.6 · 60 us, halving-doubling 6 · 60 us + 3.5 · 60 us.
  EXPECT_EQ(rule("910B1", whole_servers(5, 8), 8 * 1200000),
            "5 servers with 8 NPUs each make two levels; nhr between servers: HCCL estimates, with 60 us a step and 20 "
            "GB/s for 1200000 bytes, ring 576.0 us, nhr 456.0 us, halving-doubling 570.0 us; the first of "
            "equal ones wins");
}

std::vector<Topology> some_topologies() {
  Topology part = whole_servers(1, 8);
  part.whole_servers = false;
  return {whole_servers(1, 1),
          whole_servers(1, 2),
          whole_servers(1, 4),
          whole_servers(1, 6),
          whole_servers(1, 8),
          part,
          whole_servers(2, 2),
          whole_servers(2, 8),
          whole_servers(3, 4),
          whole_servers(4, 4),
          Topology{.ranks = 5, .servers = 2, .between = sim::Transport::rdma}};
}

std::string problem_of_default(const CollectiveRequest& request, const Topology& topology, const device::Soc& chip) {
  const auto schedule = make_collective(request, topology, chip);
  const auto input = test::make_input(*schedule, 7);
  const std::string problem = test::problem_of_result(*schedule, input, test::execute(*schedule, input, 7).output);
  if (problem.empty()) return "";
  return fmt::format("{} {} among {} ranks on {} servers of {}, {}: {}", schedule->algorithm,
                     name_of(schedule->collective), schedule->ranks, topology.servers, chip.name,
                     name_of(request.launch), problem);
}

void expect_right_choices(std::span<const std::uint64_t> sizes) {
  std::uint64_t seed = 0;
  for (const char* name : {"910A", "910B1", "Ascend910_9391"}) {
    const device::Soc chip = soc(name);
    std::vector<Topology> topologies = some_topologies();
    if (chip.generation == device::Generation::a3) {
      for (const Topology& pods : some_super_pods()) topologies.push_back(pods);
    }
    for (const Topology& topology : topologies) {
      for (int number = 0; number <= static_cast<int>(Collective::barrier); ++number) {
        const auto collective = static_cast<Collective>(number);
        for (const LaunchMode launch : {LaunchMode::graph, LaunchMode::op}) {
          for (const std::uint64_t elements : sizes) {
            CollectiveRequest request{
                .operation = {.ranks = topology.ranks, .elements = elements, .collective = collective},
                .launch = launch};
            request.operation.in_place = collective != Collective::send_recv && ++seed % 2 == 0;
            if (is_rooted(collective)) request.operation.root = static_cast<Rank>(seed % topology.ranks);
            request.config.buffer_bytes = 40000;
            ASSERT_EQ(problem_of_default(request, topology, chip), "");
          }
        }
      }
    }
  }
}

TEST(Selection, WhateverIsChosenCanBeBuiltAndIsRight) { expect_right_choices(std::array<std::uint64_t, 3>{0, 1, 331}); }

TEST(Selection, WhateverIsChosenForManyWindowsIsRightAtLength) {
  expect_right_choices(std::array<std::uint64_t, 1>{20000});
}

TEST(Selection, CountsOfBlocksAndOfPairs) {
  std::mt19937 random(3);
  std::uniform_int_distribution<std::uint64_t> any(0, 300);
  for (const Topology& topology : some_topologies()) {
    for (const Collective collective :
         {Collective::reduce_scatter, Collective::allgather, Collective::alltoall, Collective::send_recv}) {
      const std::size_t ranks = topology.ranks;
      std::vector<std::uint64_t> counts(counts_pairs(collective) ? ranks * ranks : ranks);
      for (std::uint64_t& count : counts) count = any(random);
      for (const LaunchMode launch : {LaunchMode::graph, LaunchMode::op}) {
        CollectiveRequest request{.operation = {.ranks = topology.ranks, .collective = collective}, .launch = launch};
        request.operation.in_place = false;
        request.operation.counts =
            counts_pairs(collective) ? BlockCounts::of_pairs(topology.ranks, counts) : BlockCounts::of_blocks(counts);
        request.config.buffer_bytes = 9000;
        ASSERT_EQ(problem_of_default(request, topology, soc("910A")), "");
        ASSERT_EQ(problem_of_default(request, topology, soc("910B1")), "");
      }
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
