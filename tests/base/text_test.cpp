#include "base/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hcclsim {
namespace {

using testing::ElementsAre;

TEST(Text, Parts) {
  EXPECT_THAT(split("a,,b c,", ','), ElementsAre("a", "", "b c", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(" a;b", ','), ElementsAre(" a;b"));
  EXPECT_THAT(split_trimmed(" a\t|  |b c\r", '|'), ElementsAre("a", "", "b c"));
}

TEST(Text, Numbers) {
  EXPECT_EQ(parse_number<std::uint32_t>("4294967295"), 4294967295U);
  for (const char* text : {"4294967296", "-1", "+1", " 1", "1 ", "1.0", ""}) {
    EXPECT_FALSE(parse_number<std::uint32_t>(text).has_value()) << text;
  }
  EXPECT_EQ(parse_number<double>("-2.5e3"), -2500.0);
  for (const char* text : {"inf", "nan", "1e999", "1GBps", ""}) {
    EXPECT_FALSE(parse_number<double>(text).has_value()) << text;
  }
}

TEST(Text, WordsForTheShell) {
  EXPECT_EQ(shell_word("50:99:1"), "50:99:1");
  EXPECT_EQ(shell_word("link[hccs*].bandwidth=1"), "'link[hccs*].bandwidth=1'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace hcclsim
