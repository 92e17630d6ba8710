#include "hccl/collective/selection/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"

/// The explanation has every algorithm of the collective once, the chosen one first, and says what the formulas count
/// on.
namespace hcclsim::hccl {
namespace {

using testing::Contains;
using testing::HasSubstr;
struct Explained {
  std::vector<std::string> algorithms{};
  std::vector<std::string> refused{};
  std::string rule;
  std::vector<std::string> levels;
};

/// Of an allreduce of 4 MiB, in a child: SimGrid loads one platform per process.
Explained explain_allreduce(const test::TestPlatform& shape, Algorithm algorithm = Algorithm::automatic) {
  const Json json = Json::parse(run_in_child([&] {
    test::Rig rig(test::write_platform(shape), sim::NetworkKind::fluid);
    const Communicator world = world_communicator(rig.cluster.size());
    std::vector<std::string> notes;
    const device::Soc soc = device::resolve_soc(rig.cluster, 0, notes);
    const CollectiveRequest request{.operation = {.ranks = rig.cluster.size(), .elements = 1U << 20U},
                                    .algorithm = algorithm};
    const Explanation explanation = explain(request, world, rig.cluster, soc, rig.costs);
    Json algorithms = Json::array();
    for (const Alternative& alternative : explanation.alternatives) {
      algorithms.push_back({{"name", alternative.algorithm},
                            {"possible", alternative.schedule != nullptr},
                            {"refused", alternative.refused},
                            {"chosen", alternative.chosen}});
    }
    return Json{{"algorithms", algorithms}, {"rule", explanation.rule}, {"levels", level_lines(explanation)}}.dump();
  }));
  Explained explained{.rule = json["rule"].text(), .levels = json["levels"].get<std::vector<std::string>>()};
  bool first = true;
  for (const Json& alternative : json["algorithms"]) {
    const auto possible = alternative["possible"].get<bool>();
    EXPECT_EQ(alternative["chosen"], first) << alternative.dump();
    EXPECT_EQ(alternative["refused"].text().empty(), possible) << alternative.dump();
    (possible ? explained.algorithms : explained.refused).push_back(alternative["name"].text());
    first = false;
  }
  return explained;
}

TEST(Explain, EveryAlgorithmIsThereOnceTheChosenOneFirst) {
  const Explained four = explain_allreduce({.npus_per_server = 4});
  EXPECT_EQ(four.algorithms.front(), "mesh-two-shot");
  for (const char* name : {"ring", "mesh-one-shot", "halving-doubling"}) EXPECT_THAT(four.algorithms, Contains(name));
  EXPECT_THAT(four.refused, Contains("multi-ring"));
  EXPECT_THAT(four.refused, Contains("hierarchical"));
  std::vector<std::string> sorted = four.algorithms;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
  EXPECT_EQ(four.rule, "HCCL takes the mesh for four 910A");
}

TEST(Explain, HierarchicalIsThereWithEveryAlgorithmBetweenServers) {
  const Explained servers = explain_allreduce({.servers = 3, .npus_per_server = 4});
  EXPECT_EQ(servers.algorithms.front(), "hierarchical(mesh, ring)");
  EXPECT_THAT(servers.algorithms, Contains("hierarchical(mesh, halving-doubling)"));
  EXPECT_THAT(servers.algorithms, Contains("ring"));
  EXPECT_THAT(servers.rule, HasSubstr("3 servers are no power of two"));
}

TEST(Explain, SuperPodsAreALevelOfTheirOwn) {
  const Explained pods = explain_allreduce({.servers = 4,
                                            .npus_per_server = 2,
                                            .soc = "Ascend910_9391",
                                            .inner_kind = "ub",
                                            .servers_per_pod = 2,
                                            .properties = test::no_task_costs()});
  EXPECT_EQ(pods.algorithms.front(), "hierarchical(ring, ring, halving-doubling)");
  for (const char* name : {"hierarchical(ring, ring, nhr)", "hierarchical(ring, ring, nb)"}) {
    EXPECT_THAT(pods.algorithms, Contains(name));
  }
  EXPECT_THAT(pods.rule, testing::StartsWith("2 super-pods of 2 servers with 2 NPUs each make three levels; "));
  EXPECT_THAT(pods.levels, testing::ElementsAre(HasSubstr("In a server: "),
                                                testing::AllOf(HasSubstr("Between servers: "), HasSubstr("8 GB/s")),
                                                testing::AllOf(HasSubstr("Between super-pods: "), HasSubstr("RDMA"))));
}

TEST(Explain, WhatWasAskedForIsTheChosenOne) {
  const Explained ring = explain_allreduce({.npus_per_server = 4}, Algorithm::ring);
  EXPECT_EQ(ring.algorithms.front(), "ring");
  EXPECT_THAT(ring.algorithms, Contains("mesh-two-shot"));
  EXPECT_EQ(ring.rule, "it was asked for");
  EXPECT_THROW(explain_allreduce({.npus_per_server = 4}, Algorithm::hierarchical), Error);
}

TEST(Explain, TheLevelsAreSaidWithTheirFigures) {
  const test::TestPlatform shape{
      .servers = 2,
      .npus_per_server = 4,
      .inner_latency = "300ns",
      .outer_latency = "500ns",
      .properties = {{"notify.record_us", "1"}, {"notify.wait_us", "0"}, {"reduce.bandwidth", "4GBps"}}};
  EXPECT_THAT(explain_allreduce(shape).levels,
              testing::ElementsAre("In a server: α = 2 us of notifies + set-up of SDMA + 0.3 us latency, β = 1/(10 "
                                   "GB/s), γ = 0 (reduced on the way)",
                                   "Between servers: α = 2 us of notifies + set-up of RDMA + 1 us latency, β = 1/(5 "
                                   "GB/s), γ = 1/(4 GB/s) (by the AI core)"));
  test::TestPlatform single = shape;
  single.npus_per_server = 1;
  EXPECT_EQ(explain_allreduce(single).levels.size(), 1U);
}

}  // namespace
}  // namespace hcclsim::hccl
