#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>

#include "hccl/collective/formula.hpp"
#include "hccl/collective/hierarchical.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"

/// Hierarchical allreduces on servers whose NPUs have a link for each pair and a port of their own to the other
/// servers take the sum of the formulas of their levels (spec: HCCL's coll_algo_intro), on both networks.
namespace hcclsim::hccl {
namespace {

/// What a step and a byte cost on one level.
struct Costs {
  double alpha = 0;
  double beta = 0;
  double gamma = 0;
};

constexpr double record = 1e-6;
// A step: post, wait, set up, move, post, wait; waits are free. Ports have 500 ns each: 1 us from server to server.
constexpr Costs inner_costs{2 * record + 0.6e-6 + 300e-9, 1 / 10e9, 0};
constexpr Costs outer_costs{2 * record + 7e-6 + 1e-6, 1 / 5e9, 1 / 4e9};

test::TestPlatform two_levels(Rank servers, Rank inside) {
  return {.servers = servers,
          .npus_per_server = inside,
          .inner_latency = "300ns",
          .outer_latency = "500ns",
          .properties = {{"notify.record_us", "1"},
                         {"notify.record_local_us", "0"},
                         {"notify.wait_us", "0"},
                         {"sdma.setup_us", "0.6"},
                         {"sdma.setup_large_us", "0.6"},
                         {"rdma.setup_us", "7"},
                         {"reduce.setup_us", "0"},
                         {"reduce.bandwidth", "4GBps"}}};
}

/// Reduce-scatter and all-gather of one level; a mesh does in one step what a ring does in p − 1.
double scatter_and_gather(double p, double n, bool mesh, const Costs& costs) {
  const double steps = mesh ? 1 : p - 1;
  return 2 * steps * (costs.alpha + n / p * costs.beta) + (p - 1) / p * n * costs.gamma;
}

double halving_doubling(double p, double n, const Costs& costs) {
  const double steps = std::floor(std::log2(p));
  const double core = std::exp2(steps);
  const double folds = core == p ? 0 : 2;
  return (2 * steps + folds) * costs.alpha + (2 * (core - 1) / core + folds) * n * costs.beta +
         ((core - 1) / core + folds / 2) * n * costs.gamma;
}

using Parameters = std::tuple<Rank, Rank, sim::NetworkKind>;  // servers, NPUs in each
class HierarchicalTime : public testing::TestWithParam<Parameters> {};
INSTANTIATE_TEST_SUITE_P(Collective, HierarchicalTime,
                         testing::Combine(testing::Values(2U, 3U, 4U, 6U), testing::Values(1U, 2U, 3U, 4U, 6U),
                                          testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid)),
                         [](const auto& info) {
                           return fmt::format("{}x{}_{}", std::get<0>(info.param), std::get<1>(info.param),
                                              sim::name_of(std::get<2>(info.param)));
                         });

TEST_P(HierarchicalTime, IsTheSumOfItsLevels) {
  const auto [servers, inside, network] = GetParam();
  const std::string path = test::write_platform(two_levels(servers, inside));
  // Divisible by the NPUs of a server and then by whatever the outer algorithm cuts into, at 128 bytes.
  const Bytes bytes = Bytes{128} * 32 * inside * servers * std::bit_floor(servers);
  for (const auto inner : {InnerAlgorithm::ring, InnerAlgorithm::mesh}) {
    for (const auto outer : {OuterAlgorithm::ring, OuterAlgorithm::halving_doubling}) {
      const auto schedule = std::make_shared<const Schedule>(hierarchical_allreduce(
          {servers * inside, bytes / 4}, {.ranks_per_server = inside, .inner = inner, .outer = outer, .orders = {}}));
      const std::vector<double> times = test::in_child([&, kind = network] {
        test::Rig rig(path, kind);
        const Communicator world = world_communicator(rig.cluster.size());
        std::vector<std::string> notes;
        const device::Soc soc = device::resolve_soc(rig.cluster, 0, notes);
        const auto formula = formula_of(schedule->algorithm, *schedule, topology_of(world, rig.cluster), soc);
        const FormulaCosts costs = formula_costs(world, rig.cluster, soc, rig.costs, DataType::fp32, ReduceOp::sum);
        return std::vector<double>{rig.time_of(schedule), formula_time(formula.value(), costs)};
      });
      const auto n = static_cast<double>(bytes);
      double expected = outer == OuterAlgorithm::ring ? scatter_and_gather(servers, n / inside, false, outer_costs)
                                                      : halving_doubling(servers, n / inside, outer_costs);
      if (inside > 1) expected += scatter_and_gather(inside, n, inner == InnerAlgorithm::mesh, inner_costs);
      EXPECT_NEAR(times[0] / expected, 1, 1e-9) << schedule->algorithm;
      EXPECT_NEAR(times[1] / expected, 1, 1e-12) << schedule->algorithm;
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
