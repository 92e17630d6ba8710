#include "study/files/foreign/shell/shell_script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> last_words(const std::string& text, const ShellFiles& files = {}) {
  const ShellScript script = read_shell_script(text, "train.sh", files);
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

TEST(ShellScript, ArraysHavePlacesAndANumberOfWords) {
  EXPECT_THAT(last_words("A=(x y z)\nrun ${#A[@]} ${A[1]} ${A[$((1+1))]} \"${!A[@]}\" $A"),
              ElementsAre("run", "3", "y", "z", "0", "1", "2", "x"));
  EXPECT_THAT(last_words("A=( # it's (a) comment\n x # another\n)\nrun \"${A[@]}\""), ElementsAre("run", "x"));
  EXPECT_THAT(last_words("A=()\nrun \"${A[@]}\" end"), ElementsAre("run", "end"));
}

TEST(ShellScript, PartsOfValues) {
  EXPECT_THAT(last_words("P=a/b.c.sh\nrun ${P##*/} ${P%.sh} ${P%%.*} ${P#*/} ${P/b/x} ${#P}"),
              ElementsAre("run", "b.c.sh", "a/b.c", "a/b", "b.c.sh", "a/x.c.sh", "8"));
  EXPECT_THAT(last_words("run $(echo 1 2) $(expr 3 \\* 4) `basename a/b` $(seq 1 3)"),
              ElementsAre("run", "1", "2", "12", "b", "1", "2", "3"));
}

TEST(ShellScript, KnownConditionsAreFollowed) {
  EXPECT_THAT(
      last_words(
          "N=-1\nif [ $N -ne -1 ]; then\n  A=\"--x\"\nelif [[ $N == -1 && -n \"$N\" ]]; then A=--y; else A=--z; fi\n"
          "run $A"),
      ElementsAre("run", "--y"));
  EXPECT_THAT(last_words("K=big\ncase $K in\n small|tiny) S=1;;\n b*) S=2;;\n *) S=3;;\nesac\nrun $S"),
              ElementsAre("run", "2"));
  EXPECT_THAT(last_words("A=1\n[ $A -gt 3 ] && B=x || B=y\n[ -z \"\" ] && C=z\nrun $B $C"),
              ElementsAre("run", "y", "z"));
  EXPECT_THAT(last_words("if ! [ a = b ] && (( 2 * 3 >= 6 )); then run yes; exit 0; fi\nrun no"),
              ElementsAre("run", "yes"));
  // Whether there is a folder nobody knows, so that what hangs on it may be.
  EXPECT_THAT(last_words("A=1\nif [ ! -d out ]; then mkdir out; exit 1; fi\nrun $A"), ElementsAre("run", "1"));
}

TEST(ShellScript, LoopsOverKnownWordsAreFollowed) {
  EXPECT_THAT(last_words("L=\"\"\nfor i in a b $(seq 1 2); do\n  [ $i = 1 ] && continue\n  L=\"$L $i\"\ndone\nrun $L"),
              ElementsAre("run", "a", "b", "2"));
  EXPECT_THAT(last_words("i=0\nwhile [ $i -lt 10 ]; do ((i++)); if [ $i -eq 4 ]; then break; fi; done\nrun $i"),
              ElementsAre("run", "4"));
  EXPECT_THAT(last_words("IPS=(1.1.1.1 2.2.2.2)\nME=$(hostname -I)\nRANK=\"\"\n"
                         "for i in \"${!IPS[@]}\"; do if [ \"$ME\" == \"${IPS[$i]}\" ]; then RANK=$i; break; fi; done\n"
                         "run --nodes ${#IPS[@]} --rank $RANK"),
              ElementsAre("run", "--nodes", "2", "--rank", "$RANK"));
  EXPECT_THROW(static_cast<void>(last_words("while true; do A=1; done")), Error);
}

TEST(ShellScript, FunctionsAndOtherFilesAreFollowed) {
  EXPECT_THAT(
      last_words(
          "train() {\n  local N=$1\n  shift\n  run $N \"$@\" $#\n}\nfunction other { run other; }\ntrain 8 'a b' c"),
      ElementsAre("run", "8", "a b", "c", "2"));
  const ShellFiles files = [](const std::string& path) -> std::optional<std::string> {
    if (path.ends_with("env.sh")) return "export LAYERS=12\nSIZE=7";
    if (path.ends_with("inner.sh")) return "run --layers $LAYERS --size ${SIZE:-1} $1";
    return std::nullopt;
  };
  EXPECT_THAT(last_words("source $(dirname $0)/env.sh\nsource /none/set_env.sh\nbash inner.sh last", files),
              ElementsAre("run", "--layers", "12", "--size", "7", "last"));
}

TEST(ShellScript, WhatFollowsACommandIsNoneOfItsWords) {
  EXPECT_THAT(last_words("{ run a b > log 2>&1; } &\nwait"), ElementsAre("wait"));
  EXPECT_THAT(last_words("run a \\\n  b 2>&1 > >(tee log) <<< text"), ElementsAre("run", "a", "b"));
  EXPECT_THAT(last_words("(cd x && run a &>> log)"), ElementsAre("run", "a"));
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
