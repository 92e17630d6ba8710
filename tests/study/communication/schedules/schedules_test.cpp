#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "study/communication/schedules/check.hpp"
#include "study/communication/schedules/compare.hpp"
#include "study/communication/schedules/make.hpp"
#include "study/communication/schedules/time.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

const PlatformSpec server{.file = "atlas800-9000"};

/// The file of an allreduce of eight ranks.
std::string made(const std::string& name, hccl::Algorithm algorithm) {
  MakeSpec spec{.platform = server, .request = {.algorithm = algorithm}};
  spec.request.operation.elements = 1 << 16;
  return test::write_temporary(name, make_schedule(spec).text);
}

TEST(StudySchedules, AreTimedAloneAndTogether) {
  const std::string ring = made("ring.txt", hccl::Algorithm::ring);
  const ScheduleTimes times = time_schedules({.platform = server, .files = {{ring}, {ring}}, .together = true});
  ASSERT_EQ(times.schedules.size(), 2U);
  EXPECT_EQ(times.on.npus, 8U);
  for (const TimedSchedule& timed : times.schedules) {
    EXPECT_EQ(timed.payload, Bytes{4} << 16U);
    EXPECT_DOUBLE_EQ(timed.speed.algbw, static_cast<double>(timed.payload) / timed.alone.time);
    EXPECT_GT(timed.slow_down(), 1);
    EXPECT_GE(times.makespan, timed.together->device);
  }
}

TEST(StudySchedules, AreProvedWithTheirTimeAndExecuted) {
  const std::string ring = made("proved.txt", hccl::Algorithm::ring);
  const ScheduleCheck check = check_schedule({.file = ring, .platform = server, .run = true});
  EXPECT_TRUE(check.report.ok) << check.report.verdict;
  ASSERT_TRUE(check.timing.has_value());
  EXPECT_GE(check.timing->time, check.timing->bound);
  EXPECT_EQ(check.report.levels.back().level, "L9");
  EXPECT_TRUE(execute_schedule(ring, 1, 1).check.ok());
}

TEST(StudySchedules, AreComparedInStructureAndTime) {
  const std::string ring = made("first.txt", hccl::Algorithm::ring);
  const std::string other = made("second.txt", hccl::Algorithm::halving_doubling);
  EXPECT_TRUE(compare_schedules({.platform = server, .first = ring, .second = ring}).equal());
  const ScheduleComparison differ = compare_schedules({.platform = server, .first = ring, .second = other});
  EXPECT_FALSE(differ.difference.equal());
  ASSERT_TRUE(differ.times.has_value());
  EXPECT_NE(differ.times->front(), differ.times->back());
}

TEST(StudySchedules, NeedAPlatformOfTheirRanks) {
  const std::string ring = made("large.txt", hccl::Algorithm::ring);
  EXPECT_THROW(static_cast<void>(time_schedules({.platform = {.file = "no-such-platform"}, .files = {{ring}}})), Error);
}

}  // namespace
}  // namespace hcclsim::study
