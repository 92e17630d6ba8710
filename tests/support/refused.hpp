#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/check_text.hpp"

namespace hcclsim::test {

/// What a wrong schedule is refused for.
struct Refusal {
  const char* name;  ///< of the schedule
  const char* level;
  const char* kind;
  const char* message;  ///< a part of it
};

/// The first level that has findings is the right one; its first finding has the right kind and message.
inline void expect_refused(const hccl::CheckReport& report, const Refusal& expected) {
  SCOPED_TRACE(expected.name);
  EXPECT_FALSE(report.ok);
  const auto level = std::find_if(report.levels.begin(), report.levels.end(),
                                  [](const hccl::LevelReport& candidate) { return !candidate.ok; });
  ASSERT_NE(level, report.levels.end());
  EXPECT_EQ(level->level, expected.level) << text_of(report);
  EXPECT_EQ(level->findings.front().kind, expected.kind) << text_of(report);
  EXPECT_THAT(level->findings.front().message, testing::HasSubstr(expected.message));
}

}  // namespace hcclsim::test
