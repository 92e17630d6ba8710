#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "tests/support/built.hpp"
#include "tests/support/collectives/allreduce_algorithms.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// Every allreduce schedule is executed on integers and must leave the reduction of all payloads everywhere, for any
/// number of ranks, any size and any order in which the ranks advance.
namespace hcclsim::hccl {
namespace {

std::vector<test::Values> random_input(const Operation& spec, std::mt19937_64& random) {
  std::vector<test::Values> input(spec.ranks, test::Values(spec.elements));
  for (test::Values& values : input) {
    for (std::int64_t& value : values) value = static_cast<std::int64_t>(random() % 2000) - 1000;
  }
  return input;
}

test::Values reduction(const Operation& spec, const std::vector<test::Values>& input) {
  test::Values result = input[0];
  for (Rank rank = 1; rank < spec.ranks; ++rank) {
    for (std::uint64_t i = 0; i < spec.elements; ++i) {
      result[i] = spec.op == ReduceOp::max ? std::max(result[i], input[rank][i]) : result[i] + input[rank][i];
    }
  }
  return result;
}

TEST(AllReduce, EveryAlgorithmReducesEverythingOnce) {
  std::mt19937_64 random(7);
  for (const auto& [name, algorithm] : test::allreduce_algorithms()) {
    for (const Rank ranks : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 12U, 16U, 17U, 24U}) {
      if (!algorithm.fits(ranks)) continue;
      for (const std::uint64_t elements : {0U, 1U, 31U, 256U, 1000U}) {
        for (const Bytes alignment : {Bytes{4}, Bytes{128}}) {
          const Operation spec{ranks, elements, DataType::fp32, elements % 2 == 0 ? ReduceOp::sum : ReduceOp::max,
                               alignment};
          const auto input = random_input(spec, random);
          const test::Values expected = reduction(spec, input);
          const test::Execution run = test::execute(algorithm.build(spec), input, random());
          for (Rank rank = 0; rank < ranks; ++rank) {
            ASSERT_EQ(run.output[rank], expected) << name << ", rank " << rank << " of " << ranks << ", " << elements
                                                  << " elements, alignment " << alignment;
          }
        }
      }
    }
  }
}

TEST(AllReduce, FourRingsOf910aUseEveryLinkOnce) {
  std::map<std::pair<Rank, Rank>, int> uses;
  for (const auto& order : four_rings_of_910a()) {
    for (std::size_t i = 0; i < order.size(); ++i) ++uses[{order[i], order[(i + 1) % order.size()]}];
  }
  EXPECT_EQ(uses.size(), 32U);
  for (const auto& [link, count] : uses) {
    const auto [from, to] = link;
    SCOPED_TRACE(fmt::format("{} -> {}", from, to));
    EXPECT_EQ(count, 1);
    EXPECT_TRUE(from / 4 == to / 4 || (from + 4) % 8 == to);
  }
  const Operation spec{8, 1003};
  std::mt19937_64 random(1);
  const auto input = random_input(spec, random);
  const test::Execution run = test::execute(
      build_algorithm(Algorithm::multi_ring, spec, {.inline_reduce = true, .rings = four_rings_of_910a()}), input, 3);
  for (Rank rank = 0; rank < 8; ++rank) EXPECT_EQ(run.output[rank], reduction(spec, input)) << "rank " << rank;
}

TEST(AllReduce, BytesPerRankAreTheFormulas) {
  const Operation spec{8, 8 * 320};
  const Bytes n = 8 * 320 * 4;
  const std::vector<test::Values> input(8, test::Values(spec.elements, 1));
  const auto bytes = [&](const Schedule& schedule) { return test::execute(schedule, input, 1).bytes_written; };
  const std::vector<Bytes> optimal(8, 2 * 7 * n / 8);
  EXPECT_EQ(bytes(ring_allreduce(spec, true)), optimal);
  EXPECT_EQ(bytes(test::built<Algorithm::mesh_two_shot>(spec, true)), optimal);
  EXPECT_EQ(bytes(test::built<Algorithm::halving_doubling>(spec, true)), optimal);
  EXPECT_EQ(bytes(mesh_one_shot_allreduce(spec, true)), std::vector<Bytes>(8, 7 * n));
}

}  // namespace
}  // namespace hcclsim::hccl
