#include "hccl/collective/selection/algo_notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"

/// What is said of an HCCL_ALGO that does nothing, or not all that it says, to the collective that runs.
namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Topology servers_of(Rank servers, Rank inside, std::vector<Rank> pods = {}) {
  return {.ranks = servers * inside,
          .servers = servers,
          .ranks_per_server = inside,
          .whole_servers = true,
          .between = sim::Transport::rdma,
          .super_pods = std::move(pods)};
}

std::vector<HcclSetting> set_to(const std::string& value) { return {{"HCCL_ALGO", value, "HCCL_ALGO"}}; }

struct Asked {
  std::string chip;
  Collective collective = Collective::allreduce;
  Algorithm algorithm = Algorithm::automatic;
};

device::Soc soc_of(const std::string& chip) {
  std::vector<std::string> notes;
  return device::find_soc(chip, notes);
}

CollectiveRequest request_of(const Asked& asked, const std::string& value, const Topology& topology) {
  std::vector<std::string> notes;
  CollectiveRequest request{
      .operation = {.ranks = topology.ranks, .elements = 1U << 18U, .collective = asked.collective},
      .algorithm = asked.algorithm};
  request.config = read_hccl_config(set_to(value), soc_of(asked.chip).generation, notes);
  EXPECT_THAT(notes, IsEmpty());
  return request;
}

std::vector<std::string> notes_of(const Asked& asked, const std::string& value, const Topology& topology) {
  return algo_notes(set_to(value), request_of(asked, value, topology), topology, soc_of(asked.chip).generation);
}

TEST(AlgoNotes, NothingIsSaidOfWhatIsObeyed) {
  EXPECT_THAT(notes_of({"910B1"}, "", servers_of(1, 8)), IsEmpty());
  EXPECT_THAT(notes_of({"910B1"}, "level1:ring", servers_of(2, 8)), IsEmpty());
  EXPECT_THAT(notes_of({"910B1", Collective::alltoall}, "alltoall=level1:pairwise", servers_of(2, 8)), IsEmpty());
  EXPECT_THAT(notes_of({"910_9391"}, "level1:NB;level2:ring", servers_of(4, 4, {2, 2})), IsEmpty());
  EXPECT_THAT(notes_of({"910_9391"}, "level1:AHC", servers_of(4, 4, {3, 1})), IsEmpty());
}

TEST(AlgoNotes, OperatorsThatDoNotRunAreNotNamed) {
  EXPECT_THAT(notes_of({"910B1"}, "allreduce=level1:ring/alltoall=level1:NHR", servers_of(2, 8)), IsEmpty());
  EXPECT_THAT(notes_of({"910B1"}, "level1:pairwise", servers_of(2, 8)),
              ElementsAre("HCCL_ALGO: HCCL on A2 does not have level1:pairwise for allreduce and chooses itself"));
  EXPECT_THAT(notes_of({"910A"}, "level1:AHC", servers_of(2, 8)),
              ElementsAre("HCCL_ALGO: HCCL on 910A does not have level1:AHC for allreduce and chooses itself"));
  EXPECT_THAT(notes_of({"910B1"}, "alltoall=level1:pairwise", servers_of(2, 8)),
              ElementsAre("HCCL_ALGO has no effect: it names no algorithm for allreduce"));
  EXPECT_THAT(notes_of({"910B1", Collective::gather}, "level1:ring", servers_of(2, 8)),
              ElementsAre("HCCL_ALGO has no effect: HCCL has no choice for gather"));
}

TEST(AlgoNotes, LevelsThatAreNotThereAreNamed) {
  EXPECT_THAT(notes_of({"910B1"}, "level1:NHR", servers_of(1, 8)),
              ElementsAre("HCCL_ALGO level1:NHR has no effect: all NPUs are on one server"));
  EXPECT_THAT(notes_of({"910_9391"}, "level1:NHR;level2:ring", servers_of(4, 4)),
              ElementsAre("HCCL_ALGO level2:ring has no effect: all servers are in one super-pod"));
  EXPECT_THAT(notes_of({"910_9391"}, "level1:NHR;level2:ring", servers_of(3, 4, {2, 1})),
              ElementsAre("HCCL_ALGO level1:NHR has no effect: groups of the super-pods are of one server each"));
  const Topology uneven{.ranks = 12, .servers = 2, .uneven_servers = {8, 4}};
  EXPECT_THAT(notes_of({"910_9391"}, "level1:NHR", uneven),
              ElementsAre("HCCL_ALGO level1:NHR has no effect: the servers' numbers of NPUs differ, or ranks are not "
                          "numbered server by server"));
  EXPECT_THAT(notes_of({"910_9391"}, "level1:AHC", uneven), IsEmpty());
}

TEST(AlgoNotes, WhatElseSaysTheAlgorithmIsNamed) {
  const Topology topology = servers_of(2, 8);
  EXPECT_THAT(notes_of({"910B1", Collective::allreduce, Algorithm::ring}, "level1:NHR", topology),
              ElementsAre("HCCL_ALGO has no effect: ring was asked for"));
  EXPECT_THAT(notes_of({"910B1", Collective::allreduce, Algorithm::hierarchical}, "level1:NHR", topology), IsEmpty());
  CollectiveRequest request = request_of({"910B1"}, "level1:NHR", topology);
  request.levels = {{.size = 8}, {.size = 2}};
  EXPECT_THAT(algo_notes(set_to("level1:NHR"), request, topology, device::Generation::a2),
              ElementsAre("HCCL_ALGO has no effect: levels were asked for"));
}

/// The choice names HCCL_ALGO as its reason on exactly those levels of which no note says that it has no effect.
TEST(AlgoNotes, AgreeWithTheChoice) {
  const std::vector<Topology> topologies{servers_of(1, 8),
                                         servers_of(2, 8),
                                         servers_of(3, 4),
                                         servers_of(4, 2, {2, 2}),
                                         servers_of(3, 2, {2, 1}),
                                         servers_of(2, 2, {1, 1}),
                                         {.ranks = 6, .servers = 2, .uneven_servers = {4, 2}},
                                         {.ranks = 8, .servers = 2}};
  const std::vector<std::string> algorithms{"NA", "ring", "H-D_R", "NHR", "NHR_V1", "NB", "AHC", "pairwise"};
  std::mt19937 random(7);
  std::size_t obeyed = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto any = [&](std::size_t count) { return random() % count; };
    const Topology& topology = topologies[any(topologies.size())];
    const Asked asked{std::vector<std::string>{"910A", "910B1", "910_9391"}[any(3)],
                      static_cast<Collective>(any(static_cast<std::size_t>(Collective::barrier))),
                      any(4) == 0 ? Algorithm::ring : Algorithm::automatic};
    if (!has_algorithm(asked.collective, asked.algorithm) && asked.algorithm == Algorithm::ring) continue;
    const std::string& level1 = algorithms[any(algorithms.size())];
    const std::string& level2 = algorithms[any(6)];
    if (level2 == "NHR_V1") continue;
    const std::string value = fmt::format("level1:{};level2:{}", level1, level2);
    const CollectiveRequest request = request_of(asked, value, topology);
    Selection selection;
    try {
      selection = select(request, topology, soc_of(asked.chip));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("is not simulated"));
      continue;
    }
    const std::string notes = fmt::format("{}", fmt::join(notes_of(asked, value, topology), "; "));
    for (const auto& [level, name] : {std::pair(1, level1), std::pair(2, level2)}) {
      if (name == "NA" || (level == 2 && level1 == "AHC")) continue;
      const bool named = notes.find("HCCL_ALGO has no effect") != std::string::npos ||
                         notes.find(fmt::format("level{}:{}", level, name)) != std::string::npos;
      const bool chosen = selection.rule.find(fmt::format("HCCL_ALGO says level{}", level)) != std::string::npos;
      obeyed += chosen ? 1 : 0;
      EXPECT_NE(named, chosen) << value << " of " << name_of(asked.collective) << " on " << asked.chip << ", "
                               << topology.servers << " servers: " << selection.rule << " | " << notes;
    }
  }
  EXPECT_GT(obeyed, 100U);
}

}  // namespace
}  // namespace hcclsim::hccl
