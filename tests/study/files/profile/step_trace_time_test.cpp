// step_trace_time.csv of PyTorch's profiler: means over steps, one rank of several, and what does not add up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "study/files/profile/step_trace_time.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double step_time_tolerance = 1e-12;

const std::string times_header =
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing\n";

StepTraceTime times_of(const std::string& rows) { return parse_step_trace_time(times_header + rows, "t.csv"); }

TEST(StepTraceTime, MeansOverSteps) {
  const StepTraceTime times = times_of("0,11,100,30,20,50,10,140,0,30,5\n0,12,102,32,18,50,10,144,0,32,5\n");
  EXPECT_EQ(times.steps, 2U);
  EXPECT_NEAR(*times.phases.computing, 101 * microsecond, step_time_tolerance);
  EXPECT_NEAR(*times.phases.exposed, 31 * microsecond, step_time_tolerance);
  EXPECT_NEAR(*times.phases.communication, 50 * microsecond, step_time_tolerance);
  EXPECT_NEAR(*times.phases.free, 10 * microsecond, step_time_tolerance);
  EXPECT_NEAR(*times.phases.step, 142 * microsecond, step_time_tolerance);
  EXPECT_EQ(times.phases.overlapped, true);
  EXPECT_FALSE(times.phases.forward_backward.has_value());
  EXPECT_THAT(times.notes, IsEmpty());
}

TEST(StepTraceTime, OneRankOfACluster) {
  const StepTraceTime times = parse_step_trace_time(
      "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n"
      "1,rank,10,120,20,0,20,0,140,0\n1,rank,4,100,40,0,40,0,140,0\n1,stage,\"(4, 10)\",120,40,0,40,0,140,0\n",
      "c.csv");
  EXPECT_EQ(times.rank, "4");
  EXPECT_EQ(times.steps, 1U);
  EXPECT_NEAR(*times.phases.computing, 100 * microsecond, step_time_tolerance);
  EXPECT_EQ(times.phases.overlapped, false);
  EXPECT_THAT(times.notes, ElementsAre("c.csv: 1 rows of stages left out",
                                       "c.csv: Computing is from 0.100 ms (rank 4) to 0.120 ms (rank 10)",
                                       "c.csv: steps of device 4; those of 1 more are left out"));
}

TEST(StepTraceTime, RefusesWhatCannotBe) {
  const auto refusal = [](const std::string& rows, const char* message) {
    EXPECT_THAT([&] { static_cast<void>(times_of(rows)); }, testing::ThrowsMessage<Error>(HasSubstr(message)));
  };
  refusal("0,,100,30,20,50,10,140,0,30,5\n", "t.csv:2: Step is empty: the row is a sum over all that was profiled");
  refusal("0,1,100,30,20,80,10,140,0,30,5\n",
          "t.csv:2: Communication is 80, but Communication(Not Overlapped) and Overlapped are 30 and 20");
  refusal("0,1,0,30,20,50,10,140,0,30,5\n", "t.csv:2: Computing is 0");
  refusal("0,1,-1,30,20,50,10,140,0,30,5\n", "t.csv:2: Computing must not be negative, got -1");
  refusal("0,1,1e300,30,20,50,10,140,0,30,5\n", "t.csv:2: Computing = 1e300 is more than 1000000 s");
  refusal("0,1,x,30,20,50,10,140,0,30,5\n", "t.csv:2: Computing must be a number, got 'x'");
  refusal("0,1,9,0,0,0,0,9,0,0,0\n0,1,9,0,0,0,0,9,0,0,0\n", "t.csv:3: step 1 was already given in line 2");
  refusal("0,1,9,0,0,0,0\n", "t.csv:2: 7 fields, but the first line names 11 columns");
  refusal("", "t.csv: no steps below the line of column names");
  EXPECT_THAT([] { static_cast<void>(parse_step_trace_time("Step,Computing,Free\n", "t.csv")); },
              testing::ThrowsMessage<Error>(HasSubstr("t.csv:1: no column Communication(Not Overlapped)")));
}

}  // namespace
}  // namespace hcclsim::study
