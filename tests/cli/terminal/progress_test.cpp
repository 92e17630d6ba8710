#include "cli/terminal/progress.hpp"

#include <gtest/gtest.h>

#include "cli/terminal/ticker.hpp"

namespace hcclsim::cli {
namespace {

TEST(ProgressLine, RateAndTimeLeft) {
  EXPECT_EQ(progress_line(0, 100, 2.5, 0), "iteration 0/100, loss 2.5000");
  EXPECT_EQ(progress_line(10, 100, 2.3012, 2), "iteration 10/100, loss 2.3012, 5 iterations/s, 18 s left");
  EXPECT_EQ(progress_line(1, 1000, 1, 0.25), "iteration 1/1000, loss 1.0000, 4 iterations/s, 4 min 10 s left");
  EXPECT_EQ(progress_line(1, 5000, 1, 3), "iteration 1/5000, loss 1.0000, 0.333 iterations/s, 4 h 09 min left");
}

TEST(WorkLine, SaysWhatAndHowFar) {
  EXPECT_EQ(work_line("lenet", "steps", 0, 0, 2), "lenet: 2 s so far");
  EXPECT_EQ(work_line("lenet", "steps", 0, 9, 1), "lenet: 0 of 9 steps simulated");
  EXPECT_EQ(work_line("lenet", "steps", 3, 9, 2), "lenet: 3 of 9 steps simulated, 1.5 steps/s, 4 s left");
}

}  // namespace
}  // namespace hcclsim::cli
