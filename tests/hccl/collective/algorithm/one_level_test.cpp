#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "hccl/check/check.hpp"
#include "hccl/schedule/validate.hpp"
#include "tests/support/check_text.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/collective_result.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// Rings, mesh, star and pairwise: proved by the checker for any root, and blocks that differ.
namespace hcclsim::hccl {
namespace {

std::string name_of(const test::CollectiveAlgorithm& algorithm) {
  return fmt::format("{}, {}", name_of(algorithm.collective), algorithm.name);
}

void expect_correct(const test::CollectiveAlgorithm& algorithm, const Operation& operation) {
  const Schedule schedule = algorithm.build(operation);
  ASSERT_NO_THROW(validate(schedule)) << name_of(algorithm) << ", " << operation.ranks << " ranks";
  const CheckReport report = check(schedule);
  ASSERT_TRUE(report.ok) << name_of(algorithm) << ", " << operation.ranks << " ranks, root " << operation.root << ": "
                         << test::text_of(report);
}

TEST(OneLevel, EveryAlgorithmIsCorrectOnUpTo17Ranks) {
  for (const test::CollectiveAlgorithm& algorithm : test::one_level_algorithms()) {
    for (Rank ranks = 1; ranks <= 17; ++ranks) {
      if (!algorithm.fits(ranks)) continue;
      for (const std::uint64_t elements : {0U, 1U, 31U, 1009U}) {
        Operation operation = test::operation_of(algorithm, ranks, elements);
        const Rank roots = is_rooted(operation.collective) ? std::min(ranks, 3U) : 1;
        for (Rank root = 0; root < roots; ++root) {
          operation.root = root * (ranks - 1) / 2;
          ASSERT_NO_FATAL_FAILURE(expect_correct(algorithm, operation));
        }
      }
    }
  }
}

TEST(OneLevel, EveryAlgorithmIsCorrectOn33And64Ranks) {
  for (const test::CollectiveAlgorithm& algorithm : test::one_level_algorithms()) {
    for (const Rank ranks : {33U, 64U}) {
      if (!algorithm.fits(ranks)) continue;
      Operation operation = test::operation_of(algorithm, ranks, 67);
      if (is_rooted(operation.collective)) operation.root = ranks / 3;
      ASSERT_NO_FATAL_FAILURE(expect_correct(algorithm, operation));
    }
  }
}

/// Every third block is empty, the others have up to 300 elements.
BlockCounts random_counts(const Operation& operation, std::mt19937_64& random) {
  const bool pairs = counts_pairs(operation.collective);
  std::vector<std::uint64_t> counts(pairs ? std::size_t{operation.ranks} * operation.ranks : operation.ranks);
  for (std::uint64_t& count : counts) count = random() % 3 == 0 ? 0 : random() % 300;
  return pairs ? BlockCounts::of_pairs(operation.ranks, std::move(counts)) : BlockCounts::of_blocks(std::move(counts));
}

TEST(OneLevel, BlocksThatDiffer) {
  std::mt19937_64 random(5);
  for (const test::CollectiveAlgorithm& algorithm : test::one_level_algorithms()) {
    const bool takes_counts = counts_pairs(algorithm.collective) ||
                              algorithm.collective == Collective::reduce_scatter ||
                              algorithm.collective == Collective::allgather;
    if (!takes_counts) continue;
    for (Rank ranks = 1; ranks <= 17; ++ranks) {
      if (!algorithm.fits(ranks)) continue;
      Operation operation = test::operation_of(algorithm, ranks, 0);
      operation.counts = random_counts(operation, random);
      ASSERT_NO_FATAL_FAILURE(expect_correct(algorithm, operation));
      const std::vector<test::Values> input = test::make_input(operation, ranks);
      const test::Execution run = test::execute(algorithm.build(operation), input, ranks);
      ASSERT_EQ(test::problem_of_result(operation, input, run.output), "") << name_of(algorithm) << ", " << ranks;
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
