#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hccl/check/check.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/staging.hpp"
#include "tests/support/built.hpp"
#include "tests/support/check_text.hpp"

/// What a rank has is less than a schedule needs; and how far the checker goes.
namespace hcclsim::hccl {
namespace {

using test::built;
using test::text_of;

/// Only finding of the first level that is not ok.
void expect_refused(const CheckReport& report, const std::string& level, const std::string& kind) {
  EXPECT_FALSE(report.ok);
  ASSERT_EQ(report.levels.back().level, level) << text_of(report);
  ASSERT_EQ(report.levels.back().findings.size(), 1U) << text_of(report);
  EXPECT_EQ(report.levels.back().findings[0].kind, kind);
}

TEST(CheckerLimits, StreamsNotifiesAndScratch) {
  const Schedule mesh = built<Algorithm::mesh_two_shot>({4, 128}, true);
  EXPECT_TRUE(check(mesh, {.notifies = mesh.notifies, .streams = mesh.queues, .scratch = mesh.scratch}).ok);
  expect_refused(check(mesh, {.streams = mesh.queues - 1}), "L0", "streams");
  expect_refused(check(mesh, {.notifies = mesh.notifies - 1}), "L0", "notifies");
  expect_refused(check(mesh, {.scratch = mesh.scratch - 1}), "L0", "scratch");
}

TEST(CheckerLimits, CommunicatorBuffer) {
  const Operation operation{.ranks = 4, .elements = 4096, .in_place = false};
  const Staging staging{.launch = LaunchMode::op, .buffer_bytes = 2048};
  const Schedule windows = staged(operation, staging, [](const Operation& of) { return ring_allreduce(of, true); });
  ASSERT_GT(windows.ccl, 0U);
  ASSERT_LE(windows.ccl, staging.buffer_bytes);
  EXPECT_TRUE(check(windows, {.ccl = staging.buffer_bytes}).ok);
  expect_refused(check(windows, {.ccl = windows.ccl - 1}), "L0", "ccl");
}

TEST(CheckerLimits, UpToALevel) {
  const Schedule ring = ring_allreduce({4, 128}, true);
  for (const std::uint32_t last : {0U, 1U, 2U, 3U, 4U, 5U}) {
    SCOPED_TRACE(fmt::format("up to level {}", last));
    const CheckReport report = check(ring, {.last_level = last});
    EXPECT_TRUE(report.ok);
    EXPECT_EQ(report.levels.size(), last + 1);
    EXPECT_EQ(report.verdict.find("correct in every") == 0, last >= 5) << report.verdict;
    EXPECT_FALSE(report.distances);
  }
}

TEST(CheckerLimits, LevelsOfOthersAreAddedInTheirPlace) {
  CheckReport report = check(ring_allreduce({4, 128}, true));
  add_level(report, {"L6"});
  EXPECT_TRUE(report.ok);
  EXPECT_EQ(report.levels.at(6).level, "L6");
  add_level(report, {"L8", false, 1, {{"faster-than-bound", "too fast"}}});
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.levels.back().level, "L8");
  EXPECT_EQ(report.verdict, "wrong: L8 finds faster-than-bound");
}

}  // namespace
}  // namespace hcclsim::hccl
