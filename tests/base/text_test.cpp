#include "base/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

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

TEST(Text, CharactersOfUtf8) {
  EXPECT_EQ(character_bytes("a"), 1U);
  EXPECT_EQ(character_bytes("\xC3\xA4"), 2U);
  EXPECT_EQ(character_bytes("\xE2\x82\xAC-"), 3U);
  EXPECT_EQ(character_bytes("\xF0\x9F\x99\x82"), 4U);
  for (const std::string wrong : {"\x01", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\x80"}) {
    EXPECT_EQ(character_bytes(wrong), 0U) << printable(wrong);
  }
}

TEST(Text, Printable) {
  EXPECT_EQ(printable("plain \xC3\xA4"), "plain \xC3\xA4");
  EXPECT_EQ(printable(std::string_view("a\0b\n\x7F\xFF", 6)), "a\\x00b\\x0A\\x7F\\xFF");
  EXPECT_EQ(printable("abcdef", 3), "abc…");
  EXPECT_EQ(printable("ab\xC3\xA4", 3), "ab…");  // no half characters
}

TEST(Text, PatternsHaveStarsAndQuestionMarks) {
  EXPECT_TRUE(matches("h.*.c_fc", "h.0.mlp.c_fc"));
  EXPECT_TRUE(matches("h.?.mlp.*", "h.0.mlp.c_fc"));
  EXPECT_FALSE(matches("h.?.mlp.*", "h.10.mlp.c_fc"));
  EXPECT_FALSE(matches("c_fc", "h.0.mlp.c_fc"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "fc1"));
  EXPECT_TRUE(matches("*.bias", "conv1.bias"));
  EXPECT_TRUE(matches("a*b*c", "abbcbc"));
  EXPECT_FALSE(matches("a*b*c", "abbcb"));
}

TEST(Text, ManyStarsTakeNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "b", std::string(10'000, 'a')));
}

}  // namespace
}  // namespace hcclsim
