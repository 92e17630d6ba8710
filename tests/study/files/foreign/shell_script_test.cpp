#include "study/files/foreign/shell_script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> last_words(const std::string& text) {
  const ShellScript script = read_shell_script(text, "train.sh");
  std::vector<std::string> words;
  if (script.commands.empty()) return words;
  for (const std::string& word : script.commands.back().words) words.push_back(readable(word));
  return words;
}

TEST(ShellScript, WordsQuotesAndLinesThatGoOn) {
  EXPECT_THAT(last_words("run a 'b c' \"d e\" f\\ g \\\n h # no word\n"),
              ElementsAre("run", "a", "b c", "d e", "f g", "h"));
  EXPECT_THAT(last_words("run a#b 2>&1 | tee log"), ElementsAre("tee", "log"));
  EXPECT_THAT(last_words("run a > file b 2>&1"), ElementsAre("run", "a", "b"));
  EXPECT_THAT(last_words("run ''"), ElementsAre("run", ""));
}

TEST(ShellScript, VariablesAreSplitUnlessTheyAreQuoted) {
  EXPECT_THAT(last_words("A=\"x  y\"\nrun $A \"$A\" ${A}z"), ElementsAre("run", "x", "y", "x  y", "x", "yz"));
  EXPECT_THAT(last_words("export A=1 B=2\nrun $A$B"), ElementsAre("run", "12"));
  EXPECT_THAT(last_words("A=1\nA+=2\nrun $A"), ElementsAre("run", "12"));
  EXPECT_THAT(last_words("run ${A:-7} ${B:-$((2*3))}"), ElementsAre("run", "7", "6"));
  EXPECT_THAT(last_words("A=\"--x 1 \\\n --y 2\"\neval run $A"), ElementsAre("run", "--x", "1", "--y", "2"));
}

TEST(ShellScript, ArraysKeepTheirWords) {
  EXPECT_THAT(last_words("A=(\n  --x 1  # one\n  'y z'\n)\nA+=(w)\nrun \"${A[@]}\" ${A[*]}"),
              ElementsAre("run", "--x", "1", "y z", "w", "--x", "1", "y", "z", "w"));
}

TEST(ShellScript, SumsAreOfWholeNumbers) {
  EXPECT_THAT(last_words("N=4\nrun $((N * (2 + $N) / 3 % 5)) $(( ${N}-1-1 ))"), ElementsAre("run", "3", "2"));
  EXPECT_THAT(last_words("run $((1/0)) $((x+1))"), ElementsAre("run", "$((1/0))", "$((x+1))"));
}

TEST(ShellScript, WhatOnlyRunningTellsStaysUnknown) {
  const ShellScript script =
      read_shell_script("D=$(date)\nif [ -z \"$X\" ]; then\n  N=1\nelse\n  N=2\nfi\nrun $1 $D $N $M", "train.sh");
  const std::vector<std::string>& words = script.commands.back().words;
  ASSERT_EQ(words.size(), 5U);
  EXPECT_EQ(unknown_part(words[0]), std::nullopt);
  EXPECT_EQ(unknown_part(words[1]), "$1");
  EXPECT_EQ(unknown_part(words[2]), "$(date)");
  EXPECT_EQ(unknown_part(words[3]), "$N");
  EXPECT_EQ(unknown_part(words[4]), "$M");
}

TEST(ShellScript, HereDocumentsAreNoCommands) {
  EXPECT_THAT(last_words("cat <<EOF\nrun --x 1\nEOF\nrun --y 2"), ElementsAre("run", "--y", "2"));
}

TEST(ShellScript, WhatDoesNotEndIsRefused) {
  for (const char* const text : {"run 'a", "run \"a", "A=(b c", "run $(date", "run ${A", "run `date"}) {
    EXPECT_THROW(static_cast<void>(read_shell_script(text, "train.sh")), Error) << text;
  }
}

}  // namespace
}  // namespace hcclsim::study
