#include "base/child_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"

namespace hcclsim {
namespace {

TEST(ChildProcess, ReturnsWhatTheWorkReturned) {
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(run_in_child([&] { return large; }), large);
  EXPECT_EQ(run_in_child([] { return std::string(); }), "");
}

TEST(ChildProcess, CarriesAnErrorAcross) {
  try {
    (void)run_in_child([]() -> std::string { bad_input("platform", "two\nlines"); });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "platform");
    EXPECT_STREQ(error.what(), "two\nlines");
  }
}

TEST(ChildProcess, TurnsAnAbortIntoAnErrorWithItsLastWords) {
  try {
    (void)run_in_child([]() -> std::string {
      std::fputs("last words\n", stderr);
      std::abort();
    });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_EQ(error.kind(), "crash");
    EXPECT_THAT(error.what(), testing::HasSubstr("last words"));
  }
}

TEST(ChildProcess, SeveralRunAtOnce) {
  Child first([] { return std::string("1"); });
  Child second([] { return std::string("2"); });
  EXPECT_EQ(second.result(), "2");
  EXPECT_EQ(first.result(), "1");
}

}  // namespace
}  // namespace hcclsim
