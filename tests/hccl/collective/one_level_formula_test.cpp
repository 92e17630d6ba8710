#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/direct.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/formula.hpp"
#include "tests/support/built.hpp"
#include "tests/support/case_name.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/formula_platform.hpp"
#include "tests/support/rig.hpp"

/// Simulated times of rings, mesh, star, pairwise and direct are what their headers print, where every pair of ranks
/// has a link: HCCL's formulas, and sums of steps where HCCL prints none.
namespace hcclsim::hccl {
namespace {

using test::alpha;
using test::beta;
using test::built;

struct Expected {
  Collective collective;
  std::string algorithm;                                         ///< in the registry of the tests, reduced on the way
  std::function<double(double p, double n, double gamma)> time;  ///< n: bytes of all blocks
};

const std::vector<Expected>& all_expected() {
  static const std::vector<Expected> all{
      {Collective::reduce_scatter, "ring",
       [](double p, double n, double g) { return (p - 1) * alpha + (p - 1) / p * n * (beta + g); }},
      {Collective::reduce_scatter, "double ring",
       [](double p, double n, double g) { return (p - 1) * alpha + (p - 1) / p * n / 2 * (beta + g); }},
      {Collective::reduce_scatter, "mesh",
       [](double p, double n, double g) { return alpha + n / p * beta + (p - 1) / p * n * g; }},
      {Collective::allgather, "ring", [](double p, double n, double) { return (p - 1) * (alpha + n / p * beta); }},
      {Collective::allgather, "double ring",
       [](double p, double n, double) { return (p - 1) * (alpha + n / p / 2 * beta); }},
      {Collective::allgather, "mesh", [](double p, double n, double) { return alpha + n / p * beta; }},
      {Collective::broadcast, "ring", [](double p, double n, double) { return (p - 1) * (alpha + n * beta); }},
      {Collective::broadcast, "double ring",
       [](double p, double n, double) { return 2 * (p - 1) * (alpha + n / p / 2 * beta); }},
      {Collective::broadcast, "mesh", [](double p, double n, double) { return 2 * (alpha + n / p * beta); }},
      {Collective::broadcast, "star", [](double, double n, double) { return alpha + n * beta; }},
      {Collective::reduce, "ring", [](double p, double n, double g) { return (p - 1) * (alpha + n * (beta + g)); }},
      {Collective::reduce, "double ring",
       [](double p, double n, double g) { return (p - 1) * (2 * alpha + n / p / 2 * (2 * beta + g)); }},
      {Collective::reduce, "mesh",
       [](double p, double n, double g) { return 2 * (alpha + n / p * beta) + (p - 1) / p * n * g; }},
      {Collective::reduce, "star", [](double p, double n, double g) { return alpha + n * beta + (p - 1) * n * g; }},
      {Collective::scatter, "ring", [](double p, double n, double) { return (p - 1) * (alpha + n / p * beta); }},
      {Collective::scatter, "double ring",
       [](double p, double n, double) { return (p - 1) * (alpha + n / p / 2 * beta); }},
      {Collective::scatter, "mesh", [](double p, double n, double) { return alpha + n / p * beta; }},
      {Collective::scatter, "star", [](double p, double n, double) { return alpha + n / p * beta; }},
      {Collective::gather, "ring", [](double p, double n, double) { return (p - 1) * (alpha + n / p * beta); }},
      {Collective::gather, "double ring",
       [](double p, double n, double) { return (p - 1) * (alpha + n / p / 2 * beta); }},
      {Collective::gather, "mesh", [](double p, double n, double) { return alpha + n / p * beta; }},
      {Collective::gather, "star", [](double p, double n, double) { return alpha + n / p * beta; }},
      {Collective::alltoall, "mesh", [](double p, double n, double) { return alpha + n / p * beta; }},
      {Collective::alltoall, "pairwise", [](double p, double n, double) { return (p - 1) * (alpha + n / p * beta); }},
      {Collective::send_recv, "direct", [](double, double n, double) { return alpha + n * beta; }},
  };
  return all;
}

test::CollectiveAlgorithm algorithm_of(const Expected& expected, bool inlined) {
  const std::string name = expected.algorithm + (inlined || !reduces(expected.collective) ? "" : ", reduced by a core");
  for (test::CollectiveAlgorithm& algorithm : test::one_level_algorithms()) {
    if (algorithm.collective == expected.collective && algorithm.name == name) return std::move(algorithm);
  }
  ADD_FAILURE() << name << " is not in the registry";
  return {};
}

using Parameters = std::tuple<std::size_t, sim::NetworkKind>;
class OneLevelFormulas : public testing::TestWithParam<Parameters> {};
INSTANTIATE_TEST_SUITE_P(Collective, OneLevelFormulas,
                         testing::Combine(testing::Range(std::size_t{0}, all_expected().size()),
                                          testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid)),
                         [](const auto& info) {
                           const Expected& expected = all_expected()[std::get<0>(info.param)];
                           const std::string name = std::string(name_of(expected.collective)) + "_" +
                                                    expected.algorithm + "_" +
                                                    std::string(sim::name_of(std::get<1>(info.param)));
                           return test::case_name(name);
                         });

Seconds time_of(const std::shared_ptr<const Schedule>& schedule, const std::string& path, sim::NetworkKind network) {
  return test::in_child([&] { return test::Rig(path, network).time_of(schedule); });
}

TEST_P(OneLevelFormulas, SimulatedTimeIsThatOfTheSteps) {
  const auto [number, network] = GetParam();
  const Expected& expected = all_expected()[number];
  const bool double_ring = expected.algorithm == "double ring";
  for (const Rank ranks : {2U, 3U, 4U, 7U, 8U, 16U}) {
    if (double_ring && ranks == 2) continue;  // its two directions are one
    const std::string path = test::write_platform(test::formula_platform(ranks));
    for (const bool inlined : {true, false}) {
      const test::CollectiveAlgorithm algorithm = algorithm_of(expected, inlined);
      for (const Bytes per_slice : {Bytes{256}, Bytes{1} << 20}) {
        SCOPED_TRACE(fmt::format("{} ranks, {} bytes in a slice, inline {}", ranks, per_slice, inlined));
        Operation operation = test::operation_of(algorithm, ranks, per_slice / 4);
        if (operation.blocks() == 1) operation.elements *= ranks;
        if (is_rooted(operation.collective)) operation.root = ranks / 2;
        const auto bytes = static_cast<double>(operation.payload());
        const auto schedule = std::make_shared<const Schedule>(algorithm.build(operation));
        const Seconds time = time_of(schedule, path, network);
        const double gamma = inlined ? 0 : test::gamma_cost;
        const double wanted = expected.time(ranks, bytes, gamma);
        EXPECT_NEAR(time / wanted, 1, 1e-9);
        const auto terms = formula_terms(schedule->algorithm, operation.collective, ranks, bytes, 2);
        ASSERT_TRUE(terms.has_value());
        const double formula = terms->steps * alpha + terms->bytes * beta + terms->reduced * gamma;
        EXPECT_NEAR(formula / wanted, 1, 1e-12);
      }
      if (!reduces(expected.collective)) break;
    }
  }
}

/// In step k all ranks send as much: p−1 steps, each with the time of its blocks.
TEST(Pairwise, BlocksThatDifferFromStepToStep) {
  constexpr Rank ranks = 5;
  std::vector<std::uint64_t> counts(std::size_t{ranks} * ranks);
  const std::vector<std::uint64_t> of_step{900, 4096, 0, 128, 100'000};
  for (Rank source = 0; source < ranks; ++source) {
    for (Rank step = 0; step < ranks; ++step) counts[source * ranks + (source + step) % ranks] = of_step[step];
  }
  const Operation operation{.ranks = ranks,
                            .collective = Collective::alltoall,
                            .in_place = false,
                            .counts = BlockCounts::of_pairs(ranks, counts)};
  const auto schedule = std::make_shared<const Schedule>(built<Algorithm::pairwise>(operation));
  const std::string path = test::write_platform(test::formula_platform(ranks));
  const Seconds time = time_of(schedule, path, sim::NetworkKind::fluid);
  const double flows = (4096.0 + 128 + 100'000) * 4 * beta;
  // A block without bytes costs its four notifies, but no transfer.
  EXPECT_NEAR(time, 3 * alpha + 2 * test::record + flows, 1e-12);
}

Operation messages(Rank ranks, const std::vector<std::uint64_t>& counts) {
  return {.ranks = ranks,
          .collective = Collective::send_recv,
          .in_place = false,
          .counts = BlockCounts::of_pairs(ranks, counts)};
}

TEST(Direct, OneMessageConcernsTwoRanks) {
  const Schedule schedule = direct_send_recv(messages(3, {0, 0, 0,  //
                                                          0, 0, 0,  //
                                                          0, 7, 0}));
  EXPECT_EQ(schedule.queues, 1U);
  EXPECT_EQ(schedule.notifies, 2U);
  const std::vector<Strand>& strands = schedule.stages.at(0).strands;
  ASSERT_EQ(strands.size(), 2U);
  const Strand& receiver = strands.front();
  const Strand& sender = strands.back();
  EXPECT_EQ(schedule.groups[receiver.group].order(), std::vector<Rank>{1});
  EXPECT_EQ(receiver.loops.front().tasks.size(), 3U);
  EXPECT_EQ(schedule.groups[sender.group].order(), std::vector<Rank>{2});
  EXPECT_EQ(sender.loops.front().tasks.size(), 2U);
}

TEST(Direct, NoMessages) {
  const Schedule schedule = direct_send_recv(messages(2, {0, 0, 0, 0}));
  EXPECT_TRUE(schedule.stages.empty());
  EXPECT_EQ(schedule.notifies, 0U);
}

TEST(Direct, SendingAndReceivingAtTheSameTime) {
  const auto schedule = std::make_shared<const Schedule>(direct_send_recv(messages(3, {0, 2560, 0,    //
                                                                                       2560, 0, 640,  //
                                                                                       0, 0, 50})));
  const std::string path = test::write_platform(test::formula_platform(3));
  const Seconds time = time_of(schedule, path, sim::NetworkKind::fluid);
  // Rank 1 sends to 2 first, then to 0; that from 0 comes meanwhile.
  EXPECT_NEAR(time, 2 * alpha + (2560 + 640) * 4 * beta, 1e-12);
}

}  // namespace
}  // namespace hcclsim::hccl
