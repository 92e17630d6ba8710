#include "cli/print/iteration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/sample_run.hpp"

namespace hcclsim::cli {
namespace {

using testing::ElementsAre;

TEST(IterationPoints, OfATrace) {
  const RunReport report = sample_run();
  ASSERT_EQ(report.iterations.size(), 2);
  const IterationPoints& second = report.iterations[1];
  EXPECT_DOUBLE_EQ(second.fp_start, 10e-3);
  EXPECT_DOUBLE_EQ(second.bp_start, 12e-3);
  EXPECT_DOUBLE_EQ(second.bp_end, 16e-3);
  ASSERT_EQ(second.allreduces.size(), 2);
  EXPECT_DOUBLE_EQ(second.allreduces[1].start, 18e-3);
  EXPECT_DOUBLE_EQ(second.allreduces[1].end, 19e-3);
  EXPECT_DOUBLE_EQ(second.iteration_end, 20e-3);
}

/// The sample run with the allreduce of an overflow flag from 9.25 to 9.5 ms.
std::vector<IterationPoints> flagged_iterations() {
  RunReport report = sample_run();
  sim::Trace& trace = report.result.trace;
  trace.add({.stream = 1,
             .name = trace.intern("overflow_flag"),
             .kind = sim::SpanKind::collective,
             .start = 19.25e-3,
             .end = 19.5e-3,
             .bytes = 4,
             .iteration = 1});
  return iteration_points(trace, 0, report.workload);
}

TEST(IterationPoints, TheOverflowFlagIsNoSegment) {
  const IterationPoints second = flagged_iterations()[1];
  EXPECT_EQ(second.allreduces.size(), 2);
  ASSERT_TRUE(second.overflow_flag.has_value());
  EXPECT_DOUBLE_EQ(second.overflow_flag->start, 19.25e-3);
}

TEST(IterationPoints, OfAnotherRank) { EXPECT_TRUE(iteration_points(sample_run().result.trace, 1, {}).empty()); }

TEST(IterationPoints, WithoutForwardKernels) {
  RunReport report = sample_run();
  for (device::TimedKernel& kernel : report.workload.kernels) kernel.phase = models::Phase::backward;
  const auto iterations = iteration_points(report.result.trace, 0, report.workload);
  EXPECT_EQ(iterations[0].bp_start, 0);
}

TEST(StepTrace, ColumnsOfMsprof) {
  EXPECT_EQ(step_trace_csv(sample_run().iterations),
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
      iteration_bar(sample_run().iterations[1]),
      ElementsAre(
          "|FP.................|BP.....................................|AR1################|AR2######|U........|"));
}

TEST(IterationBar, AllreducesBesideBackward) {
  const IterationPoints iteration{
      .fp_start = 0, .bp_start = 2, .bp_end = 6, .allreduces = {{4, 5}, {6, 9}}, .iteration_end = 10};
  const auto lines = iteration_bar(iteration);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0], "|FP.................|BP.....................................|");
  EXPECT_EQ(lines[1],
            "                                        |AR1######|         |AR2##########################|U........|");
}

TEST(IterationBar, ShortSpansKeepAColumn) {
  const IterationPoints iteration{.fp_start = 0,
                                  .bp_start = 3,
                                  .bp_end = 10,
                                  .allreduces = {{10, 10.001}, {10.001, 10.002}},
                                  .iteration_end = 10.003};
  const std::string line = iteration_bar(iteration).front();
  EXPECT_THAT(line, testing::EndsWith(".|#|#|U|"));
}

}  // namespace
}  // namespace hcclsim::cli
