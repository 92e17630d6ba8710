#include "hccl/comm/folded_class.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace hcclsim::hccl {
namespace {

const std::string does_the_same = " ranks simulated, the others do the same as these at the same dates: ";

TEST(FoldedText, NamesTheRanksOfEachClass) {
  EXPECT_EQ(folded_text(std::vector<FoldedClass>{{.simulated = 5, .ranks = {0, 1, 2, 3, 4, 5, 6}},
                                                 {.simulated = 7, .ranks = {7}},
                                                 {.simulated = 8, .ranks = {8, 10, 12}}},
                        11),
            "3 of 11" + does_the_same + "5 for 0-6; 7 for 7; 8 for 8,10,12");
}

TEST(FoldedText, ShortensWhatIsRegular) {
  FoldedClass one{.simulated = 3};
  for (Rank rank = 3; rank < 4096; rank += 8) one.ranks.push_back(rank);
  EXPECT_EQ(folded_text(std::vector{one}, 4096), "1 of 4,096" + does_the_same + "3 for 3,11,..,4091");
}

TEST(FoldedText, CountsWhatItLeavesOut) {
  std::vector<FoldedClass> classes{{.simulated = 0, .ranks = {0, 1, 4, 5, 8, 9, 12, 13, 16, 19}}};
  for (const Rank rank : {2U, 3U, 6U, 7U}) classes.push_back({.simulated = rank, .ranks = {rank}});
  EXPECT_EQ(folded_text(classes, 14),
            "5 of 14" + does_the_same + "0 for 0-1,4-5,8-9,12-13 and 2 more; 2 for 2; 3 for 3; 6 for 6; and 1 more");
}

}  // namespace
}  // namespace hcclsim::hccl
