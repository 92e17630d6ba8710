#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hccl/collective/algorithm/levels/hierarchical.hpp"
#include "hccl/collective/algorithm/rooted/pipeline.hpp"
#include "hccl/collective/formula.hpp"
#include "tests/support/collectives/formula_platform.hpp"
#include "tests/support/collectives/formula_time.hpp"
#include "tests/support/rig.hpp"

/// Collectives over levels on servers whose NPUs have a link for each pair and a port of their own to the other
/// servers take the sum of the formulas of their levels (HCCL's documentation, coll_algo_intro), on both networks.
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

using HierarchyParameters = std::tuple<Rank, Rank, sim::NetworkKind>;  // servers, NPUs in each
class HierarchicalTime : public testing::TestWithParam<HierarchyParameters> {};
INSTANTIATE_TEST_SUITE_P(Collective, HierarchicalTime,
                         testing::Combine(testing::Values(2U, 3U, 4U, 6U), testing::Values(1U, 2U, 3U, 4U, 6U),
                                          testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid)),
                         [](const auto& info) {
                           return fmt::format("{}_servers_of_{}_{}", std::get<0>(info.param), std::get<1>(info.param),
                                              sim::name_of(std::get<2>(info.param)));
                         });

/// Simulated time, and what formula_of and formula_time say.
test::FormulaTimes times_of(const std::string& path, sim::NetworkKind network, Schedule schedule,
                            const std::vector<HierarchyLevel>& levels) {
  return test::in_child([&]() -> test::FormulaTimes {
    test::Rig rig(path, network);
    const Communicator world = world_communicator(rig.cluster.size());
    std::vector<std::string> notes;
    const device::Soc soc = device::resolve_soc(rig.cluster, 0, notes);
    const auto formula = formula_of(schedule.algorithm, schedule, topology_of(world, rig.cluster), soc, levels);
    const FormulaCosts costs = formula_costs(world, rig.cluster, soc, rig.costs, DataType::fp32, ReduceOp::sum);
    return {.simulated = rig.time_of(std::make_shared<const Schedule>(std::move(schedule))),
            .formula = formula_time(formula.value(), costs)};
  });
}

TEST_P(HierarchicalTime, IsTheSumOfItsLevels) {
  const auto [servers, inside, network] = GetParam();
  const std::string path = test::write_platform(test::two_level_platform(servers, inside));
  // Divisible by the NPUs of a server and then by whatever the outer algorithm cuts into, at 128 bytes.
  const Bytes bytes = Bytes{128} * 32 * inside * servers * std::bit_floor(servers);
  for (const auto inner : {Algorithm::ring, Algorithm::mesh}) {
    for (const auto outer : {Algorithm::ring, Algorithm::halving_doubling}) {
      const std::vector<HierarchyLevel> levels{{.size = inside, .algorithm = inner},
                                               {.size = servers, .algorithm = outer, .inline_reduce = false}};
      const test::FormulaTimes times =
          times_of(path, network, hierarchical({servers * inside, bytes / 4}, levels), levels);
      const auto n = static_cast<double>(bytes);
      double expected = outer == Algorithm::ring ? scatter_and_gather(servers, n / inside, false, outer_costs)
                                                 : halving_doubling(servers, n / inside, outer_costs);
      if (inside > 1) expected += scatter_and_gather(inside, n, inner == Algorithm::mesh, inner_costs);
      EXPECT_NEAR(times.simulated / expected, 1, 1e-9) << name_of(inner) << ' ' << name_of(outer);
      EXPECT_NEAR(times.formula / expected, 1, 1e-12) << name_of(inner) << ' ' << name_of(outer);
    }
  }
}

/// A reduce-scatter or an all-gather of one level; n bytes in all.
double one_way(double p, double n, bool mesh, bool reduces, const Costs& costs) {
  const double steps = mesh ? 1 : p - 1;
  return p == 1 ? 0 : steps * (costs.alpha + n / p * costs.beta) + (reduces ? (p - 1) / p * n * costs.gamma : 0);
}

// Three levels: pairs, servers of pairs, and what is between servers. The inner two share a server's links.
TEST_P(HierarchicalTime, OfThreeLevelsIsTheirSum) {
  const auto [servers, pairs, network] = GetParam();
  const Rank ranks = servers * pairs * 2;
  const std::string path = test::write_platform(test::two_level_platform(servers, pairs * 2));
  const std::vector<HierarchyLevel> levels{{.size = 2, .algorithm = Algorithm::ring},
                                           {.size = pairs, .algorithm = Algorithm::mesh},
                                           {.size = servers, .algorithm = Algorithm::ring, .inline_reduce = false}};
  for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather}) {
    const Bytes bytes = Bytes{128} * 32 * ranks;
    const bool blocks = collective != Collective::allreduce;
    const test::FormulaTimes times = times_of(
        path, network,
        hierarchical({.ranks = ranks, .elements = bytes / 4 / (blocks ? ranks : 1), .collective = collective}, levels),
        levels);
    double expected = 0;
    double inside = 1;
    for (const HierarchyLevel& level : levels) {
      const bool outer = level.size == servers && !level.inline_reduce;
      const Costs& costs = outer ? outer_costs : inner_costs;
      const bool mesh = level.algorithm == Algorithm::mesh;
      const auto n = static_cast<double>(bytes);
      const double of_level = blocks ? n / ranks * level.size * inside : n / inside;
      if (collective != Collective::allgather) expected += one_way(level.size, of_level, mesh, true, costs);
      if (collective != Collective::reduce_scatter) expected += one_way(level.size, of_level, mesh, false, costs);
      inside *= level.size;
    }
    EXPECT_NEAR(times.simulated / expected, 1, 1e-9) << name_of(collective);
    EXPECT_NEAR(times.formula / expected, 1, 1e-12) << name_of(collective);
  }
}

// All of n on both levels: in the server all pairs at once, between servers one after the other.
TEST_P(HierarchicalTime, OfAnAlltoallIsTheSumOfItsTwoLevels) {
  const auto [servers, inside, network] = GetParam();
  const std::string path = test::write_platform(test::two_level_platform(servers, inside));
  const std::vector<HierarchyLevel> levels{{.size = inside, .algorithm = Algorithm::mesh},
                                           {.size = servers, .algorithm = Algorithm::pairwise}};
  const Rank ranks = servers * inside;
  const Operation operation{
      .ranks = ranks, .elements = 1U << 18U, .collective = Collective::alltoall, .in_place = false};
  const test::FormulaTimes times = times_of(path, network, hierarchical(operation, levels), levels);
  const double n = static_cast<double>(operation.payload());
  const double in_server = inside == 1 ? 0 : inner_costs.alpha + n / inside * inner_costs.beta;
  const double expected = in_server + (servers - 1) * (outer_costs.alpha + n / servers * outer_costs.beta);
  EXPECT_NEAR(times.simulated / expected, 1, 1e-9);
  EXPECT_NEAR(times.formula / expected, 1, 1e-12);
}

// The larger of the two levels' steps counts, whichever it is.
TEST_P(HierarchicalTime, PipelineIsThePublishedFormula) {
  const auto [servers, inside, network] = GetParam();
  const Rank ranks = servers * inside;
  const std::string path = test::write_platform(test::two_level_platform(servers, inside));
  const std::vector<HierarchyLevel> levels{{.size = inside}, {.size = servers}};
  for (const Bytes part : {Bytes{128}, Bytes{1} << 20}) {
    for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather}) {
      const bool blocks = collective != Collective::allreduce;
      const auto schedule = std::make_shared<const Schedule>(
          pipeline({.ranks = ranks, .elements = part / 4 * (blocks ? 1 : ranks), .collective = collective}, levels));
      const test::FormulaTimes times = times_of(path, network, *schedule, levels);
      const auto bytes = static_cast<double>(part);
      const double inner = inside == 1 ? 0 : bytes * inner_costs.beta + inner_costs.alpha;
      const double outer = bytes * outer_costs.beta + outer_costs.alpha;
      const double expected = (blocks ? 1 : 2) * (std::max(inner, outer) * (servers - 1) + inner);
      EXPECT_NEAR(times.simulated / expected, 1, 1e-9) << schedule->algorithm << ' ' << name_of(collective);
      EXPECT_NEAR(times.formula / expected, 1, 1e-12) << schedule->algorithm << ' ' << name_of(collective);
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
