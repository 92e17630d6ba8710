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

TEST(Text, WordsForTheShell) {
  EXPECT_EQ(shell_word("50:99:1"), "50:99:1");
  EXPECT_EQ(shell_word("link[hccs*].bandwidth=1"), "'link[hccs*].bandwidth=1'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace hcclsim
