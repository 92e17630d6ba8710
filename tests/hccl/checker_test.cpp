#include <gtest/gtest.h>

#include "hccl/check/check.hpp"
#include "hccl/collective/ring.hpp"
#include "tests/support/allreduce_algorithms.hpp"
#include "tests/support/check_text.hpp"

/// Every algorithm passes every level of the checker, for any number of ranks and any size.
namespace hcclsim::hccl {
namespace {

using test::text_of;

void expect_all_correct(const std::vector<Rank>& rank_counts, const std::vector<std::uint64_t>& sizes) {
  for (const auto& [name, algorithm] : test::allreduce_algorithms()) {
    for (const Rank ranks : rank_counts) {
      if (!algorithm.fits(ranks)) continue;
      for (const std::uint64_t elements : sizes) {
        for (const Bytes alignment : {Bytes{4}, Bytes{128}}) {
          const CheckReport report =
              check(algorithm.build({ranks, elements, DataType::fp32, ReduceOp::sum, alignment}));
          ASSERT_TRUE(report.ok) << name << ", " << ranks << " ranks, " << elements << " elements, alignment "
                                 << alignment << ": " << text_of(report);
          ASSERT_EQ(report.levels.size(), 7U);
        }
      }
    }
  }
}

TEST(Checker, EveryAlgorithmIsCorrectOnUpTo17Ranks) {
  expect_all_correct({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, {0, 1, 31, 1009});
}

TEST(Checker, EveryAlgorithmIsCorrectOn24To128Ranks) { expect_all_correct({24, 32, 33, 64, 100}, {1009}); }

TEST(Checker, RingOn1024Ranks) {
  const CheckReport report = check(ring_allreduce({1024, 1024 * 64}, true));
  EXPECT_TRUE(report.ok) << text_of(report);
  ASSERT_TRUE(report.distances);
  EXPECT_EQ(report.distances->steps, 2U * 1023);
  EXPECT_EQ(report.distances->sent, report.distances->least_sent);
}

}  // namespace
}  // namespace hcclsim::hccl
