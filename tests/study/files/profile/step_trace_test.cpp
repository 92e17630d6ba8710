// Step traces as versions of msprof write them: several devices and graphs, iterations that are cut off, and rows that
// lack fields.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "study/files/profile/step_trace.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double step_trace_tolerance = 1e-12;

const std::string columns =
    "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
    "Iteration Refresh(us),Data Aug Bound(us),Model ID,Reduce Start(us),Reduce Duration(us),Reduce Start(us),"
    "Reduce Duration(us)\r\n";

/// Iteration `id` of 400 microsecond, whose BP ends after 180 microsecond; `reduces` are its last fields.
std::string row(int id, const std::string& reduces, int device = 0, int model = 4) {
  const int at = id * 400;
  return fmt::format("{},{},169952962300{}.250\t,169952962300{}.250\t,169952962300{}.250\t,400,180,120,N/A,{}{}\r\n",
                     device, id, at + 1000, at + 1180, at + 1300, model, reduces);
}

std::string two(int id) {
  return fmt::format(",169952962300{}.5\t,40,169952962300{}.5\t,60", id * 400 + 1180, id * 400 + 1220);
}

StepTrace parsed(const std::string& rows) { return parse_step_trace(columns + rows, "st.csv"); }

void expect_step(const Phases& phases) {
  EXPECT_NEAR(*phases.forward_backward, 180 * microsecond, step_trace_tolerance);
  EXPECT_NEAR(*phases.tail, 120 * microsecond, step_trace_tolerance);
  EXPECT_NEAR(*phases.step, 400 * microsecond, step_trace_tolerance);
  ASSERT_EQ(phases.allreduces.size(), 2U);
  EXPECT_NEAR(phases.allreduces[0], 40 * microsecond, step_trace_tolerance);
  EXPECT_NEAR(phases.allreduces[1], 60 * microsecond, step_trace_tolerance);
  EXPECT_EQ(phases.overlapped, false);
}

TEST(StepTrace, Whole) {
  const StepTrace trace = parsed(row(0, two(0)) + row(1, two(1)) + row(2, two(2)));
  expect_step(trace.phases());
  EXPECT_EQ(trace.counted().size(), 2U);
  EXPECT_EQ(trace.zero_us, 1699529623001000);
  EXPECT_THAT(trace.notes, IsEmpty());
}

TEST(StepTrace, LastIterationWithoutItsAllreduces) {
  const StepTrace trace = parsed(row(0, two(0)) + row(1, two(1)) + row(2, two(2)) + row(3, ",N/A,N/A,N/A,N/A"));
  expect_step(trace.phases());
  EXPECT_THAT(trace.notes, ElementsAre("st.csv: iteration 3 has 0 allreduces instead of 2 and is left out"));
}

TEST(StepTrace, IterationsWithoutADate) {
  std::string cut = row(3, ",N/A,N/A,N/A,N/A");
  cut.replace(cut.find("1699529623002380.250\t"), 21, "N/A");
  std::string in_between = row(1, two(1));
  in_between.replace(in_between.find("1699529623001400.250\t"), 21, "N/A");
  const StepTrace trace = parsed(row(0, two(0)) + in_between + row(2, two(2)) + cut);
  EXPECT_THAT(trace.notes,
              ElementsAre("st.csv: 2 iterations are left out for want of FP start, BP end or iteration end"));
  EXPECT_NEAR(*trace.phases().forward_backward, 180 * microsecond, step_trace_tolerance);
  EXPECT_FALSE(trace.phases().step.has_value());  // what is above the only one that counts was cut off
}

TEST(StepTrace, RowsThatLackFields) {
  // For each allreduce that is not there, msprof of 2025 writes one N/A in the place of two.
  const StepTrace trace =
      parsed(row(0, ",N/A,N/A") + row(1, two(1)) + row(2, two(2)) + row(3, ",1699529623002380.5\t,40,N/A"));
  expect_step(trace.phases());
}

TEST(StepTrace, FirstDurationsThatWereSubtractedTheWrongWay) {
  // 2^64 ns less 40 microsecond.
  std::string wrapped = two(1);
  wrapped.replace(wrapped.find(",40,"), 4, ",18446744073709511.616,");
  expect_step(parsed(row(0, two(0)) + row(1, wrapped)).phases());
}

TEST(StepTrace, OneDeviceAndOneModel) {
  std::string other = row(1, ",N/A,N/A,N/A,N/A", 2, 1);
  const StepTrace trace = parsed(row(0, two(0), 10) + row(1, two(1), 10) + row(0, two(0), 2) + other +
                                 row(1, two(1), 2) + row(2, two(2), 2));
  expect_step(trace.phases());
  EXPECT_EQ(trace.device, "2");
  EXPECT_THAT(trace.notes, ElementsAre("st.csv: iterations of device 2; those of 1 more are left out",
                                       "st.csv: iterations of Model ID 4; those of 1 more are left out"));
}

TEST(StepTrace, OrderOfRowsSaysNothing) {
  const StepTrace trace = parsed(row(0, two(0)) + row(1, two(1)) + row(2, two(2)) + row(3, two(3)));
  const StepTrace sorted = parsed(row(3, two(3)) + row(1, two(1)) + row(0, two(0)) + row(2, two(2)));
  expect_step(sorted.phases());
  EXPECT_EQ(sorted.phases().step, trace.phases().step);
  EXPECT_EQ(sorted.phases().forward_backward, trace.phases().forward_backward);
  EXPECT_EQ(sorted.zero_us, trace.zero_us);
  // What lies between iterations 1 and 3 is not known: no step ends there.
  EXPECT_FALSE(parsed(row(3, two(3)) + row(1, two(1))).phases().step.has_value());
}

TEST(StepTrace, RefusesWhatCannotBe) {
  const auto refusal = [](const std::string& rows, const char* message) {
    EXPECT_THAT([&] { parsed(rows); }, testing::ThrowsMessage<Error>(HasSubstr(message)));
  };
  refusal(row(0, two(0)) + row(0, two(0)), "st.csv:3: iteration 0 starts before iteration 0 (line 2) has ended");
  refusal(row(0, two(0) + ",1"), "st.csv:2: 15 fields, but the first line names 14 columns");
  refusal(row(0, two(0)) + "0,1,169952962300", "st.csv:3: Model ID is empty: is the row cut off?");
  std::string same = row(0, two(0));
  same.replace(same.find("1180.250"), 8, "1000.250");
  refusal(same, "st.csv:2: BP End(us) is not after FP Start(us)");
}

}  // namespace
}  // namespace hcclsim::study
