#include "cli/print/run/iteration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/cli/sample_run.hpp"

namespace hcclsim::cli {
namespace {

using testing::ElementsAre;

/// The iterations of the sample run, the second one with the allreduce of an overflow flag from 9.25 to 9.5 ms.
std::vector<hccl::IterationPoints> flagged_iterations() {
  models::Program program = sample_program();
  program.overflow_flag = true;
  hccl::TimedStep step = sample_step(std::move(program));
  SampleSpans(step, 1).add_collective(2, 9.25, 9.5);
  return hccl::StepView::of(step.plan, step.trace, 0).iterations;
}

TEST(StepTrace, ColumnsOfMsprof) {
  EXPECT_EQ(step_trace_csv(sample_run().view.iterations),
            "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
            "Iteration Refresh(us),Data Aug Bound(us),Reduce Start(us),Reduce Duration(us),Reduce Start(us),"
            "Reduce Duration(us)\n"
            "1,0.000,6000.000,10000.000,10000.000,6000.000,4000.000,N/A,6000.000,2000.000,8000.000,1000.000\n"
            "2,10000.000,16000.000,20000.000,10000.000,6000.000,4000.000,0.000,16000.000,2000.000,18000.000,"
            "1000.000\n");
}

TEST(StepTrace, TheOverflowFlagComesLast) {
  const std::string csv = step_trace_csv({flagged_iterations()[1]});
  EXPECT_THAT(csv, testing::HasSubstr(",Reduce Start(us),Reduce Duration(us)\n"));
  EXPECT_THAT(csv, testing::EndsWith(",18000.000,1000.000,19250.000,250.000\n"));
}

TEST(IterationBar, ChecksAndFlag) {
  EXPECT_THAT(
      iteration_bar(flagged_iterations()[1]),
      ElementsAre(
          "|FP.................|BP.....................................|AR1################|AR2######|C.|F|U...|"));
}

TEST(IterationBar, Serial) {
  EXPECT_THAT(
      iteration_bar(sample_run().view.iterations[1]),
      ElementsAre(
          "|FP.................|BP.....................................|AR1################|AR2######|U........|"));
}

TEST(IterationBar, OneNpuHasNoAllreduces) {
  const hccl::IterationPoints iteration{
      .fp_start = 0, .bp_start = 2, .bp_end = 6, .allreduces = {{6, 6}, {6, 6}}, .iteration_end = 10};
  EXPECT_THAT(
      iteration_bar(iteration),
      ElementsAre(
          "|FP.................|BP.....................................|U......................................|"));
}

TEST(IterationBar, AllreducesBesideBackward) {
  const hccl::IterationPoints iteration{
      .fp_start = 0, .bp_start = 2, .bp_end = 6, .allreduces = {{4, 5}, {6, 9}}, .iteration_end = 10};
  const auto lines = iteration_bar(iteration);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0], "|FP.................|BP.....................................|");
  EXPECT_EQ(lines[1],
            "                                        |AR1######|         |AR2##########################|U........|");
}

TEST(IterationBar, ShortSpansKeepAColumn) {
  const hccl::IterationPoints iteration{.fp_start = 0,
                                        .bp_start = 3,
                                        .bp_end = 10,
                                        .allreduces = {{10, 10.001}, {10.001, 10.002}},
                                        .iteration_end = 10.003};
  const std::string line = iteration_bar(iteration).front();
  EXPECT_THAT(line, testing::EndsWith(".|#|#|U|"));
}

}  // namespace
}  // namespace hcclsim::cli
