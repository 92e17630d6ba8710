#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/nhr_v1.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/formula.hpp"
#include "tests/support/built.hpp"
#include "tests/support/collectives/formula_platform.hpp"
#include "tests/support/collectives/formula_time.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"

/// On a platform with a link for every pair, simulated times equal HCCL's published formulas
/// (D = alpha + n·beta + n·gamma per step), with alpha the sum of its named parts.
namespace hcclsim::hccl {
namespace {

using test::alpha;
using test::beta;
using test::built;
using test::formula_platform;
using test::gamma_cost;

struct Published {
  std::string name;
  std::function<Schedule(const Operation&, bool)> build;
  std::function<double(double p, double n, double gamma)> time;
  Collective collective = Collective::allreduce;
  double early_posts = 0;  ///< that nobody waits for, beyond powers of two: who is beyond has nothing else to do
};

double halving_doubling_time(double p, double n, double gamma) {
  const double log = std::floor(std::log2(p));
  const double core = std::exp2(log);
  if (core == p) return 2 * log * alpha + 2 * (p - 1) / p * n * beta + (p - 1) / p * n * gamma;
  return (2 * log + 2) * alpha + (2 * (core - 1) / core + 2) * n * beta + ((core - 1) / core + 1) * n * gamma;
}

double halving_doubling_reduce_time(double p, double n, double gamma) {
  const double log = std::floor(std::log2(p));
  const double core = std::exp2(log);
  const double fold = core == p ? 0 : 1;
  return (2 * log + fold) * alpha + (2 * (core - 1) / core + fold) * n * beta + ((core - 1) / core + fold) * n * gamma;
}

/// So many phases of ceil(log2 p) steps each.
double logarithmic_time(double phases, double p, double n) {
  return phases * (std::ceil(std::log2(p)) * alpha + (p - 1) / p * n * beta);
}
double reduce_scatter_time(double p, double n, double gamma) {
  return logarithmic_time(1, p, n) + (p - 1) / p * n * gamma;
}
double all_gather_time(double p, double n, double /*gamma*/) { return logarithmic_time(1, p, n); }
double allreduce_time(double p, double n, double gamma) { return logarithmic_time(2, p, n) + (p - 1) / p * n * gamma; }

/// Of a phase of halving-doubling: beyond powers of two all is given away first, or passed on last, then windows have
/// two blocks for each of the first ranks.
double halving_time(double p, double n, bool reduces, double gamma) {
  const double core = std::exp2(std::floor(std::log2(p)));
  if (core == p) return reduces ? reduce_scatter_time(p, n, gamma) : all_gather_time(p, n, gamma);
  double row = 0;
  for (double length = 1; length < core; length *= 2) row += length + std::min(p - core, length);
  return (std::log2(core) + 2) * alpha + (n + (row + 1) * n / p) * beta + (reduces ? (n + row * n / p) * gamma : 0);
}

const std::vector<Published>& formulas() {
  constexpr auto reduce_scatter = Collective::reduce_scatter;
  constexpr auto allgather = Collective::allgather;
  static const std::vector<Published> all{
      {"ring", ring_allreduce,
       [](double p, double n, double g) {
         return 2 * (p - 1) * alpha + 2 * (p - 1) / p * n * beta + (p - 1) / p * n * g;
       }},
      {"mesh_one_shot", mesh_one_shot_allreduce,
       [](double p, double n, double g) { return alpha + n * beta + (p - 1) * n * g; }},
      {"mesh_two_shot", built<Algorithm::mesh_two_shot>,
       [](double p, double n, double g) { return 2 * alpha + 2 * n / p * beta + (p - 1) / p * n * g; }},
      {"halving_doubling", built<Algorithm::halving_doubling>, halving_doubling_time},
      {"halving_doubling_reduce", built<Algorithm::halving_doubling>, halving_doubling_reduce_time, Collective::reduce},
      {"halving_doubling_reduce_scatter", built<Algorithm::halving_doubling>,
       [](double p, double n, double g) { return halving_time(p, n, true, g); }, reduce_scatter, 1},
      {"halving_doubling_all_gather", built<Algorithm::halving_doubling>,
       [](double p, double n, double g) { return halving_time(p, n, false, g); }, allgather},
      {"nhr", built<Algorithm::nhr>, allreduce_time},
      {"nhr_reduce_scatter", built<Algorithm::nhr>, reduce_scatter_time, reduce_scatter},
      {"nhr_all_gather", built<Algorithm::nhr>, all_gather_time, allgather},
      {"nb", built<Algorithm::nb>, allreduce_time},
      {"nb_reduce_scatter", built<Algorithm::nb>, reduce_scatter_time, reduce_scatter},
      {"nb_all_gather", built<Algorithm::nb>, all_gather_time, allgather}};
  return all;
}

using Parameters = std::tuple<std::size_t, sim::NetworkKind>;
class Formulas : public testing::TestWithParam<Parameters> {};
INSTANTIATE_TEST_SUITE_P(Collective, Formulas,
                         testing::Combine(testing::Range(std::size_t{0}, formulas().size()),
                                          testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid)),
                         [](const auto& info) {
                           return formulas()[std::get<0>(info.param)].name + "_" +
                                  std::string(sim::name_of(std::get<1>(info.param)));
                         });

TEST_P(Formulas, SimulatedTimeIsThePublishedFormula) {
  const auto [number, network] = GetParam();
  const Published& formula = formulas()[number];
  for (const Rank ranks : {2U, 3U, 4U, 6U, 7U, 8U, 16U}) {
    const std::string path = test::write_platform(formula_platform(ranks));
    for (const Bytes per_slice : {Bytes{128}, Bytes{4096}, Bytes{1} << 20}) {
      // Divisible by the ranks and by the power of two that halving-doubling cuts into.
      const Bytes bytes = per_slice * ranks * std::bit_floor(ranks);
      for (const bool inlined : {true, false}) {
        Operation spec{.ranks = ranks, .elements = bytes / 4, .collective = formula.collective};
        spec.elements /= spec.blocks();
        const auto schedule = std::make_shared<const Schedule>(formula.build(spec, inlined));
        const auto times = test::in_child([&, kind = network]() -> test::FormulaTimes {
          test::Rig rig(path, kind);
          const Seconds predicted = test::formula_time_of(*schedule, rig, inlined ? ReduceOp::sum : ReduceOp::prod);
          return {.simulated = rig.time_of(schedule), .formula = predicted};
        });
        const double expected = formula.time(ranks, static_cast<double>(bytes), inlined ? 0 : gamma_cost);
        const double early = std::has_single_bit(ranks) ? 0 : formula.early_posts * test::record;
        EXPECT_NEAR(times.simulated / (expected - early), 1, 1e-9)
            << ranks << " ranks, " << bytes << " bytes, inline " << inlined;
        EXPECT_NEAR(times.formula / expected, 1, 1e-12) << ranks << " ranks, " << bytes << " bytes, inline " << inlined;
      }
    }
  }
}

double time_of(const std::string& platform, const Schedule& schedule) {
  return test::in_child([&] {
    test::Rig rig(platform, sim::NetworkKind::fluid);
    return rig.time_of(std::make_shared<const Schedule>(schedule));
  });
}

/// In a tree, "my memory is free" is posted long before the writer comes to it, except in the first step.
TEST(FormulaOfTrees, TreesTakeLessByThePostsThatAreNotWaitedFor) {
  for (const Rank ranks : {2U, 3U, 6U, 7U, 8U, 13U, 16U}) {
    const std::string path = test::write_platform(formula_platform(ranks));
    const double bytes = 4096.0 * ranks;
    const double steps = std::ceil(std::log2(ranks));
    const double early = (steps - 1) * test::record;
    const Operation scatter{.ranks = ranks, .elements = 1024, .collective = Collective::scatter, .root = ranks / 2};
    const double scattering = logarithmic_time(1, ranks, bytes) - early;
    EXPECT_NEAR(time_of(path, built<Algorithm::nhr>(scatter)) / scattering, 1, 1e-9) << ranks;
    EXPECT_NEAR(time_of(path, built<Algorithm::nb>(scatter)) / scattering, 1, 1e-9) << ranks;
    const Operation broadcast{
        .ranks = ranks, .elements = 1024 * ranks, .collective = Collective::broadcast, .root = ranks / 2};
    EXPECT_NEAR(time_of(path, built<Algorithm::halving_doubling>(broadcast)) / (steps * (alpha + bytes * beta) - early),
                1, 1e-9)
        << ranks;
    for (const Schedule& schedule : {built<Algorithm::nhr>(broadcast), built<Algorithm::nb>(broadcast)}) {
      const double time = time_of(path, schedule);
      const double formula = logarithmic_time(2, ranks, bytes);
      EXPECT_LE(time, formula * (1 + 1e-9)) << schedule.algorithm << ", " << ranks;
      EXPECT_GE(time, (formula - 2 * early) * (1 - 1e-9)) << schedule.algorithm << ", " << ranks;
    }
  }
}

/// HCCL has no formula of NHR_V1: the sum of its steps.
TEST(FormulaOfGrids, NhrV1TakesTheSumOfItsSteps) {
  for (const Rank ranks : {2U, 4U, 5U, 6U, 8U, 12U, 15U, 16U}) {
    const RingGrid grid(ranks);
    const std::string path = test::write_platform(formula_platform(ranks));
    const double bytes = 4096.0 * ranks;
    const double phase = (grid.rows + grid.columns - 2) * alpha + (bytes - 4096) * beta;
    const Operation gather{.ranks = ranks, .elements = 1024, .collective = Collective::allgather};
    EXPECT_NEAR(time_of(path, built<Algorithm::nhr_v1>(gather)) / phase, 1, 1e-9) << ranks;
    for (const bool inlined : {true, false}) {
      const double reducing = inlined ? 0 : (bytes - 4096) * gamma_cost;
      const Operation scatter{.ranks = ranks, .elements = 1024, .collective = Collective::reduce_scatter};
      EXPECT_NEAR(time_of(path, built<Algorithm::nhr_v1>(scatter, inlined)) / (phase + reducing), 1, 1e-9) << ranks;
      const Operation allreduce{.ranks = ranks, .elements = 1024 * ranks};
      EXPECT_NEAR(time_of(path, built<Algorithm::nhr_v1>(allreduce, inlined)) / (2 * phase + reducing), 1, 1e-9)
          << ranks;
    }
  }
}

Operation operation_of(Collective collective, const Topology& topology) {
  return {.ranks = topology.ranks, .elements = 2048, .collective = collective};
}

TEST(FormulaText, NamesWhatItCounts) {
  const device::Soc soc;  // 910A: four rings
  const Topology server{.ranks = 8, .servers = 1, .ranks_per_server = 8};
  const auto text = [&](const char* algorithm, const Topology& topology, Collective collective,
                        const std::vector<HierarchyLevel>& levels = {}) {
    const Operation operation = operation_of(collective, topology);
    return to_string(formula_of(algorithm, operation, topology, soc, levels).value(), operation.payload());
  };
  EXPECT_EQ(text("ring", server, Collective::allreduce), "14α + 1.75nβ + 0.875nγ");
  EXPECT_EQ(text("ring", server, Collective::allgather), "7α + 0.875nβ");
  EXPECT_EQ(text("multi-ring", server, Collective::allreduce), "14α + 0.4375nβ + 0.2188nγ");
  EXPECT_EQ(text("mesh-two-shot", server, Collective::allreduce), "2α + 0.25nβ + 0.875nγ");
  EXPECT_EQ(text("mesh-two-shot", server, Collective::reduce_scatter), "α + 0.125nβ + 0.875nγ");
  EXPECT_EQ(text("mesh-one-shot", server, Collective::allreduce), "α + nβ + 7nγ");
  EXPECT_EQ(text("halving-doubling", server, Collective::allreduce), "6α + 1.75nβ + 0.875nγ");
  EXPECT_EQ(text("nhr", {.ranks = 9, .servers = 1}, Collective::allreduce), "8α + 1.778nβ + 0.8889nγ");
  EXPECT_EQ(text("nb", server, Collective::reduce_scatter), "3α + 0.875nβ + 0.875nγ");
  const Topology servers{.ranks = 24, .servers = 3, .ranks_per_server = 8};
  EXPECT_EQ(text("halving-doubling", servers, Collective::allreduce), "10α + 3.875nβ + 1.938nγ");
  const std::vector<HierarchyLevel> levels{{8, Algorithm::mesh}, {3, Algorithm::halving_doubling}};
  EXPECT_EQ(text("hierarchical(mesh, halving-doubling)", servers, Collective::allreduce, levels),
            "inside 2α + 0.25nβ + 0.875nγ; between 4α + 0.375nβ + 0.1875nγ");
  // Three super-pods of two servers of four: a reduce-scatter works on all of n between super-pods, on a third of it
  // between servers, on a sixth in them.
  const Topology pods{.ranks = 24, .servers = 6, .ranks_per_server = 4, .super_pods = {2, 2, 2}};
  const std::vector<HierarchyLevel> three{{4, Algorithm::ring}, {2, Algorithm::ring}, {3, Algorithm::nhr}};
  EXPECT_EQ(text("hierarchical(ring, ring, nhr)", pods, Collective::reduce_scatter, three),
            "inside 3α + 0.125nβ + 0.125nγ; between α + 0.1667nβ + 0.1667nγ; "
            "between super-pods 2α + 0.6667nβ + 0.6667nγ");
  EXPECT_EQ(text("hierarchical(ring, ring, nhr)", pods, Collective::broadcast, three),
            "inside 6α + 1.5nβ; between 2α + 0.25nβ; between super-pods 4α + 0.1667nβ");
}

TEST(FormulaText, ThereIsNoneWhereHcclGivesNone) {
  const device::Soc soc;
  const Topology servers{.ranks = 24, .servers = 3, .ranks_per_server = 8};
  const auto has = [&](const char* algorithm, const Topology& topology, Collective collective,
                       const std::vector<HierarchyLevel>& levels = {}) {
    return formula_of(algorithm, operation_of(collective, topology), topology, soc, levels).has_value();
  };
  EXPECT_FALSE(has("user's own", servers, Collective::allreduce));
  EXPECT_FALSE(has("mesh-one-shot", servers, Collective::allgather));
  EXPECT_FALSE(has("halving-doubling", servers, Collective::scatter));
  EXPECT_FALSE(has("ring", servers, Collective::alltoall));
  Operation uneven = operation_of(Collective::allgather, servers);
  EXPECT_TRUE(formula_of("ring", uneven, servers, soc, {}).has_value());
  uneven.counts = BlockCounts::of_blocks(std::vector<std::uint64_t>(24, 3));
  EXPECT_FALSE(formula_of("ring", uneven, servers, soc, {}).has_value());
  EXPECT_FALSE(
      has("hierarchical(mesh, star)", servers, Collective::allreduce, {{8, Algorithm::mesh}, {3, Algorithm::star}}));
}

}  // namespace
}  // namespace hcclsim::hccl
