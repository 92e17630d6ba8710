#include "study/run/split_search/cost_curve.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hcclsim::study {
namespace {

TEST(CostCurve, SizesAscendToTheLargest) {
  for (const Bytes largest : {1U, 2048U, 3000U, 6492928U, 102228128U}) {
    for (const std::size_t most : {2U, 5U, 29U}) {
      SCOPED_TRACE(fmt::format("at most {} sizes up to {} bytes", most, largest));
      const std::vector<Bytes> sizes = sizes_up_to(largest, most);
      ASSERT_GE(sizes.size(), 2U);
      EXPECT_LE(sizes.size(), most + 1);
      EXPECT_EQ(sizes.front(), 1024U);
      EXPECT_EQ(sizes.back(), std::max<Bytes>(largest, 2048));
      for (std::size_t i = 1; i < sizes.size(); ++i) EXPECT_GT(sizes[i], sizes[i - 1]);
    }
  }
}

}  // namespace
}  // namespace hcclsim::study
