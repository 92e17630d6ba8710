#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/collective_result.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// Every algorithm of every collective is executed on integers and must leave what the operation asks for, for any
/// number of ranks, any size, any root and any order in which the ranks advance.
namespace hcclsim::hccl {
namespace {

std::string problem(const test::CollectiveAlgorithm& algorithm, const Operation& operation, std::uint64_t seed) {
  const std::vector<test::Values> input = test::make_input(operation, seed);
  const test::Execution run = test::execute(algorithm.build(operation), input, seed);
  return test::problem_of_result(operation, input, run.output);
}

std::string text_of(const Operation& operation) {
  return fmt::format("{} ranks, {} elements, root {}", operation.ranks, operation.elements, operation.root);
}

void expect_right(Rank least, Rank most) {
  std::uint64_t seed = least;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (Rank ranks = least; ranks <= most; ++ranks) {
      if (!algorithm.fits(ranks)) continue;
      for (const std::uint64_t elements : {0U, 1U, 31U, 640U}) {
        Operation operation = test::operation_of(algorithm, ranks, elements);
        operation.op = seed % 2 == 0 ? ReduceOp::sum : ReduceOp::max;
        if (is_rooted(operation.collective)) operation.root = static_cast<Rank>(seed % ranks);
        ASSERT_EQ(problem(algorithm, operation, ++seed), "") << algorithm.name << ": " << text_of(operation);
      }
    }
  }
}

TEST(Collectives, EveryAlgorithmLeavesWhatTheOperationAsksFor) { expect_right(1, 17); }
TEST(Collectives, EveryAlgorithmOn18To33RanksIsRightAtLength) { expect_right(18, 33); }

TEST(Collectives, ManyRanks) {
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : {64U, 100U, 128U}) {
      if (!algorithm.fits(ranks)) continue;
      Operation operation = test::operation_of(algorithm, ranks, 67);
      if (is_rooted(operation.collective)) operation.root = ranks / 3;
      ASSERT_EQ(problem(algorithm, operation, ranks), "") << algorithm.name << ": " << text_of(operation);
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
