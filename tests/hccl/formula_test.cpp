#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "hccl/collective/halving_doubling.hpp"
#include "hccl/collective/mesh.hpp"
#include "hccl/collective/ring.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"

/// On a platform with a link for every pair, simulated times equal HCCL's published formulas
/// (D = alpha + n·beta + n·gamma per step), with alpha the sum of its named parts.
namespace hcclsim::hccl {
namespace {

constexpr double latency = 0.3e-6;
constexpr double record = 1e-6;
constexpr double setup = 0.6e-6;
// A step: post, wait, set up, move, post, wait; waits and queues are free on this platform.
constexpr double alpha = record + setup + latency + record;
constexpr double beta = 1 / 10e9;
constexpr double gamma_cost = 1 / 4e9;

test::TestPlatform formula_platform(Rank ranks) {
  test::TestPlatform platform;
  platform.npus_per_server = ranks;
  platform.inner_latency = "300ns";
  platform.properties = {{"notify.record_us", "1"},    {"notify.record_local_us", "0"}, {"notify.wait_us", "0"},
                         {"sdma.setup_us", "0.6"},     {"sdma.setup_large_us", "0.6"},  {"reduce.setup_us", "0"},
                         {"reduce.bandwidth", "4GBps"}};
  return platform;
}

struct Formula {
  std::string name;
  std::function<Schedule(const Operation&, bool)> build;
  std::function<double(double p, double n, double gamma)> time;
};

double halving_doubling_time(double p, double n, double gamma) {
  const double log = std::floor(std::log2(p));
  const double core = std::exp2(log);
  if (core == p) return 2 * log * alpha + 2 * (p - 1) / p * n * beta + (p - 1) / p * n * gamma;
  return (2 * log + 2) * alpha + (2 * (core - 1) / core + 2) * n * beta + ((core - 1) / core + 1) * n * gamma;
}

const std::vector<Formula>& formulas() {
  static const std::vector<Formula> all{
      {"ring", ring_allreduce,
       [](double p, double n, double g) {
         return 2 * (p - 1) * alpha + 2 * (p - 1) / p * n * beta + (p - 1) / p * n * g;
       }},
      {"mesh_one_shot", mesh_one_shot_allreduce,
       [](double p, double n, double g) { return alpha + n * beta + (p - 1) * n * g; }},
      {"mesh_two_shot", mesh_two_shot_allreduce,
       [](double p, double n, double g) { return 2 * alpha + 2 * n / p * beta + (p - 1) / p * n * g; }},
      {"halving_doubling", halving_doubling_allreduce, halving_doubling_time}};
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
  const Formula& formula = formulas()[std::get<0>(GetParam())];
  for (const Rank ranks : {2U, 3U, 4U, 6U, 7U, 8U, 16U}) {
    const std::string path = test::write_platform(formula_platform(ranks));
    for (const Bytes per_slice : {Bytes{128}, Bytes{4096}, Bytes{1} << 20}) {
      // Divisible by the ranks and by the power of two that halving-doubling cuts into.
      const Bytes bytes = per_slice * ranks * std::bit_floor(ranks);
      for (const bool inlined : {true, false}) {
        const Operation spec{ranks, bytes / 4};
        const auto schedule = std::make_shared<const Schedule>(formula.build(spec, inlined));
        const double time = test::in_child([&] {
          test::Rig rig(path, std::get<1>(GetParam()));
          return std::vector<double>{rig.time_of(schedule)};
        })[0];
        const double expected = formula.time(ranks, static_cast<double>(bytes), inlined ? 0 : gamma_cost);
        EXPECT_NEAR(time / expected, 1, 1e-9) << ranks << " ranks, " << bytes << " bytes, inline " << inlined;
      }
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
