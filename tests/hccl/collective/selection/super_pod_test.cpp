#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "hccl/collective/algorithm/levels/ahc.hpp"
#include "hccl/collective/algorithm/levels/hierarchical.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/formula.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "sim/platform/generate.hpp"
#include "tests/support/collectives/formula_platform.hpp"
#include "tests/support/rig.hpp"

/// Super-pods as a platform shows them, and collectives over the three levels that they make.
namespace hcclsim::hccl {
namespace {

test::TestPlatform pods_of(Rank servers, Rank servers_per_pod, Rank npus) {
  test::TestPlatform platform = test::two_level_platform(servers, npus);
  platform.soc = "Ascend910_9391";
  platform.inner_kind = "ub";
  platform.servers_per_pod = servers_per_pod;
  return platform;
}

struct Found {
  std::vector<double> pods;
  std::vector<double> sizes;
  double servers_per_pod = 0;
};

/// The topology of the given ranks on a platform file.
Found topology(const std::string& path, const std::vector<Rank>& ranks) {
  const std::vector<double> numbers = test::in_child([&] {
    sim::Cluster cluster(path);
    const Topology topology = topology_of({"", ranks}, cluster);
    std::vector<double> numbers{static_cast<double>(topology.servers_per_pod())};
    const std::vector<Rank> sizes = topology.super_pod_sizes();
    numbers.insert(numbers.end(), topology.super_pods.begin(), topology.super_pods.end());
    numbers.insert(numbers.end(), sizes.begin(), sizes.end());
    return numbers;
  });
  const auto middle = numbers.begin() + 1 + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  return {{numbers.begin() + 1, middle}, {middle, numbers.end()}, numbers.front()};
}

Found topology(const test::TestPlatform& shape, const std::vector<Rank>& ranks) {
  return topology(test::write_platform(shape), ranks);
}

std::vector<Rank> first_ranks(Rank count) {
  std::vector<Rank> ranks(count);
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  return ranks;
}

using Numbers = std::vector<double>;

TEST(SuperPods, AreServersWithoutRoceBetweenThem) {
  const Found six = topology(pods_of(6, 2, 2), first_ranks(12));
  EXPECT_EQ(six.pods, (Numbers{2, 2, 2}));
  EXPECT_EQ(six.sizes, (Numbers{4, 4, 4}));
  EXPECT_EQ(six.servers_per_pod, 2);
  const Found uneven = topology(pods_of(6, 4, 2), first_ranks(12));
  EXPECT_EQ(uneven.pods, (Numbers{4, 2}));
  EXPECT_EQ(uneven.servers_per_pod, 2);
  const Found alone = topology(pods_of(3, 0, 2), first_ranks(6));
  EXPECT_EQ(alone.pods, (Numbers{1, 1, 1}));
}

TEST(SuperPods, OneIsNone) {
  const Found one = topology(pods_of(3, 3, 2), first_ranks(6));
  EXPECT_TRUE(one.pods.empty());
  EXPECT_EQ(one.servers_per_pod, 3);
}

TEST(SuperPods, CountTheRanksOfUnevenServers) {
  const Found uneven = topology(pods_of(4, 2, 2), {0, 1, 2, 4, 5, 6, 7});
  EXPECT_EQ(uneven.pods, (Numbers{2, 2}));
  EXPECT_EQ(uneven.sizes, (Numbers{3, 4}));
}

TEST(SuperPods, AreA3sAlone) {
  test::TestPlatform shape = pods_of(4, 2, 2);
  shape.soc = "Ascend910B1";
  EXPECT_TRUE(topology(shape, first_ranks(8)).pods.empty());
}

TEST(SuperPods, ARankNumberingThatReturnsToAServerHasNone) {
  EXPECT_TRUE(topology(pods_of(4, 2, 2), {0, 2, 4, 6, 1, 3, 5, 7}).pods.empty());
}

// What is chosen over three levels takes the sum of the formulas of its levels.
TEST(SuperPods, ThreeLevelsTakeTheSumOfTheirFormulas) {
  for (const Rank pods : {2U, 3U}) {
    const std::string path = test::write_platform(pods_of(pods * 2, 2, 4));
    const Rank ranks = pods * 8;
    for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather}) {
      SCOPED_TRACE(fmt::format("{} of {} super-pods", name_of(collective), pods));
      CollectiveRequest request{.operation = {.ranks = ranks, .collective = collective}};
      request.operation.elements = 32U * ranks * (collective == Collective::allreduce ? 2 * ranks : 1);
      struct Found {
        Seconds simulated = 0;
        Seconds formula = 0;
        std::size_t levels = 0;
      };
      const Found found = test::in_child([&]() -> Found {
        test::Rig rig(path, sim::NetworkKind::fluid);
        const Communicator world = world_communicator(ranks);
        std::vector<std::string> notes;
        const device::Soc soc = device::resolve_soc(rig.cluster, 0, notes);
        const Topology topology = topology_of(world, rig.cluster);
        const auto schedule = make_collective(request, topology, soc);
        const auto formula =
            formula_of(schedule->algorithm, *schedule, topology, soc, select(request, topology, soc).levels);
        const FormulaCosts costs = formula_costs(world, rig.cluster, soc, rig.costs, DataType::fp32, ReduceOp::sum);
        return {.simulated = rig.time_of(schedule),
                .formula = formula_time(formula.value(), costs),
                .levels = formula->size()};
      });
      EXPECT_NEAR(found.simulated / found.formula, 1, 1e-9);
      EXPECT_EQ(found.levels, 3U);
    }
  }
}

/// Three A3 servers with four dies each, in super-pods of two and one.
std::string generated_platform() {
  return test::write_temporary(
      "pods.xml",
      sim::generate_platform({.soc = "910_9391", .servers = 3, .npus_per_server = 4, .super_pods = {2, 1}}));
}

/// Whether the schedule that is made with this value of HCCL_ALGO is the expected one.
bool makes(const std::string& algo, const Schedule& expected) {
  const Operation& operation = expected;
  return test::in_child([&] {
    sim::Cluster cluster(generated_platform());
    std::vector<std::string> notes;
    const device::Soc soc = device::resolve_soc(cluster, 0, notes);
    CollectiveRequest request{.operation = operation};
    const std::vector<HcclSetting> settings{{"HCCL_ALGO", algo, "HCCL_ALGO"}};
    request.config = read_hccl_config(settings, soc.generation, notes);
    const Topology topology = topology_of(world_communicator(12), cluster);
    return *make_collective(request, topology, soc) == expected;
  });
}

TEST(SuperPods, OfAGeneratedPlatformAreLevelsAndGroups) {
  const Found found = topology(generated_platform(), first_ranks(12));
  EXPECT_EQ(found.pods, (Numbers{2, 1}));
  EXPECT_EQ(found.sizes, (Numbers{8, 4}));
  const Operation operation{.ranks = 12, .elements = 12 * 128};
  // The bus reduces on the way, RoCE does not.
  EXPECT_TRUE(makes("level1:AHC", ahc(operation, {{8, 4}, true, false})));
  EXPECT_FALSE(makes("level1:AHC", ahc(operation, {{4, 4, 4}, true, false})));
  // Super-pods of different sizes are groups of one server: three of them between super-pods.
  const HierarchyLevel inside{.size = 4, .algorithm = Algorithm::multi_ring, .rings = double_ring(4)};
  for (const auto& [algo, outer] : {std::pair("level2:NHR", Algorithm::nhr), std::pair("level2:NB", Algorithm::nb)}) {
    EXPECT_TRUE(makes(algo, hierarchical(operation, {inside, {.size = 3, .algorithm = outer, .inline_reduce = false}})))
        << algo;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
