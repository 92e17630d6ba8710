#include "hccl/comm/communicator.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hcclsim::hccl {
namespace {

TEST(RankRanges, KeepTheOrder) {
  EXPECT_EQ(rank_ranges({}), "");
  EXPECT_EQ(rank_ranges(std::vector<Rank>{5}), "5");
  EXPECT_EQ(rank_ranges(std::vector<Rank>{0, 1, 2, 3, 16, 17, 9}), "0-3,16-17,9");
  EXPECT_EQ(rank_ranges(std::vector<Rank>{3, 2, 1}), "3,2,1");
  EXPECT_EQ(rank_ranges(std::vector<Rank>{7, 7, 8}), "7,7-8");
}

}  // namespace
}  // namespace hcclsim::hccl
