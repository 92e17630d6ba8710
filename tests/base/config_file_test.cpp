#include "base/config_file.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/memory_file.hpp"

namespace hcclsim {
namespace {

/// "section.key=value :line" of every entry, in order.
std::string entries(const std::string& text) {
  const MemoryFile file(text);
  std::string all;
  for (const ConfigEntry& entry : read_config_file(file.path())) {
    all += entry.section + '.' + entry.key + '=' + entry.value + ' ' + entry.place.substr(file.path().size()) + ';';
  }
  return all;
}

/// The message behind the file's name.
std::string error(const std::string& text) {
  const MemoryFile file(text);
  try {
    static_cast<void>(read_config_file(file.path()));
    return "none";
  } catch (const Error& error) {
    return std::string(error.what()).substr(file.path().size());
  }
}

TEST(ConfigFile, ReadsTomlAsTheStandardHasIt) {
  EXPECT_EQ(entries("\xef\xbb\xbf"
                    "z = 1_000\r\na = 0xFF # comment\r\n"),
            ".z=1000 :1;.a=255 :2;");
  EXPECT_EQ(entries("a = 0.1\nb = 1e-3\nc = -2\nd = inf\n"), ".a=0.1 :1;.b=0.001 :2;.c=-2 :3;.d=inf :4;");
  EXPECT_EQ(entries("a = true\nb = false\n"), ".a=true :1;.b=false :2;");
  EXPECT_EQ(entries("a = \"tab\\t\\u00e4\"\nb = 'C:\\x'\n"), ".a=tab\t\xc3\xa4 :1;.b=C:\\x :2;");
  EXPECT_EQ(entries("a = \"\"\"50,\\\n   50\"\"\"\nb = 1\n"), ".a=50,50 :1;.b=1 :3;");
  EXPECT_EQ(entries("a = [1, 2.5, 'x',\n # why\n true,]\n"), ".a=1,2.5,x,true :1;");
  EXPECT_EQ(entries("a = [[80, 20], [60.5, 39.5]]\nb = [[1]]\n"), ".a=80,20;60.5,39.5 :1;.b=1 :2;");
  EXPECT_EQ(entries("[run]\nb = 2\n[tune]\na = 1\n"), "run.b=2 :2;tune.a=1 :4;");
  EXPECT_EQ(entries("run.b = 2\n\"quoted key\" = 3\n"), "run.b=2 :1;.quoted key=3 :2;");
  EXPECT_EQ(entries(""), "");
}

TEST(ConfigFile, NamesTheLineOfWhatIsWrong) {
  EXPECT_EQ(error("a = 1\nb = lenet\n"), ":2: value: could not determine value type");
  EXPECT_EQ(error("a = 1\na = 2\n"), ":2: key-value pair: cannot redefine existing integer 'a'");
  // Keys in quotes are told as they are written.
  EXPECT_EQ(error("\"fc1\" = 1\n\"fc1\" = 2\n"), ":2: key-value pair: cannot redefine existing integer '\"fc1\"'");
  EXPECT_EQ(error("'h.*.fc' = 1\n'h.*.fc'   = 2\n"), ":2: key-value pair: cannot redefine existing integer ''h.*.fc''");
  EXPECT_EQ(error("[a.\"b c\"]\n[a.\"b c\"]\n"), ":2: table header: cannot redefine existing table 'a.\"b c\"'");
  EXPECT_EQ(error("abab = 1\nabab = 2\n"), ":2: key-value pair: cannot redefine existing integer 'abab'");
  EXPECT_EQ(error("\"a\" = 1\n[\"a\"]\n"), ":2: table header: cannot redefine existing integer '\"a\"' as table");
  EXPECT_TRUE(error("a = 1\n[run]\na = 2\n").starts_with(":3: key 'a' was given before, in "));
  EXPECT_TRUE(error("a = 1979-05-27\n").starts_with(":1: key 'a' holds a date or time; give a string"));
  EXPECT_TRUE(error("[run]\na = {b = 1}\n").starts_with(":2: key 'run.a' holds a table;"));
  EXPECT_EQ(error("[ = {b = 1}\n"), ":1: key: expected bare key starting character or string delimiter, saw '='");
  EXPECT_TRUE(error("a = [1, [2]]\n").starts_with(":1: key 'a' holds a list in a list;"));
  EXPECT_TRUE(error("a = [[1], [[2]]]\n").starts_with(":1: key 'a' holds a list in a list;"));
  EXPECT_TRUE(error("[run.more]\na = 1\n").starts_with(":1: key 'run.more' holds a table;"));
}

TEST(ConfigFile, HasCharactersBeyondAsciiInStringsAndCommentsOnly) {
  EXPECT_EQ(entries("# \xc3\xa9 \"\n'\xc3\xa9' = \"\xc3\xa9\\\"\xc3\xa9\" # \xc3\xa9"),
            ".\xc3\xa9=\xc3\xa9\"\xc3\xa9 :2;");
  EXPECT_EQ(entries("a = '''\n\xc3\xa9'\xc3\xa9'''''\nb = \"\"\"\xc3\xa9\\\"\"\"\"\"\nc = \"\"\n"),
            ".a=\xc3\xa9'\xc3\xa9'' :1;.b=\xc3\xa9\"\" :3;.c= :4;");
  for (const std::string before : {"", "a = 'x' ", "a = \"\" ", "a = \"\"\"\"\"\" ", "a = '''''''' "}) {
    EXPECT_EQ(error("b = 1\n" + before + "\xc3\xa9 = 1\n"),
              ":2: '\xc3\xa9' stands outside of quotes and comments, where TOML has ASCII alone");
  }
  EXPECT_EQ(error("a = \"\xc3\xa9\" \xc3\xa9\n"),
            ":1: '\xc3\xa9' stands outside of quotes and comments, where TOML has ASCII alone");
  EXPECT_EQ(entries("\xef\xbb\xbf\"\xc3\xa9\" = 1\n'\xc3\xbc' = '?c3?a9'\n"), ".\xc3\xa9=1 :1;.\xc3\xbc=?c3?a9 :2;");
  // Quotes in what is no string: nothing behind them is seen as TOML.
  EXPECT_TRUE(error("a = 1'-\xc3\xa9'\n").starts_with(":1: date:"));
  EXPECT_TRUE(error("c=-.\".\xef\xb7\xbfX[=\"0.").starts_with(":1: "));
  EXPECT_TRUE(error("a = 'x\n\xff = 1").starts_with(":1: literal string:"));
  EXPECT_EQ(error("a = 1\n b \xff = 1"),
            ":2: '\\xFF' stands outside of quotes and comments, where TOML has ASCII alone");
}

TEST(ConfigFile, Depth) {
  const auto times = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  EXPECT_TRUE(error("a" + times(".a", 100) + " = 1\n").starts_with(":1: key 'a.a' holds a table;"));
  for (const int count : {101, 20'000}) {
    const std::string refused = ":2: tables and lists are more than 100 deep";
    EXPECT_EQ(error("b = 1\na" + times(".a", count) + " = 1\n"), refused);
    EXPECT_EQ(error("b = 1\n[a" + times(".a", count) + "]\nc = 1\n"), refused);
    EXPECT_EQ(error("b = 1\nc = {a" + times(".a", count) + " = 1}\n"), refused);
    EXPECT_EQ(error("b = 1\nc = " + times("[", count) + times("]", count) + "\n"), refused);
    EXPECT_EQ(error("b = 1\nc = " + times("{a = ", count) + "1" + times("}", count) + "\n"), refused);
    // What is no TOML after them is not looked at.
    EXPECT_EQ(error("b = 1\n\"a.\"" + times(".a", count) + " = 1\n = 2\n"), refused);
  }
  // Dots in strings and comments, and of one key after the other, are no depth.
  const std::string dots = times(".", 200);
  EXPECT_EQ(entries("a = '" + dots + "' # " + dots + "\nb = \"\\\"" + dots + "\"\nc = '''\n" + dots + "\n'''\n"),
            ".a=" + dots + " :1;.b=\"" + dots + " :2;.c=" + dots + "\n :3;");
  EXPECT_TRUE(entries("a = [" + times("1.5, ", 300) + "]\n").starts_with(".a=1.5,1.5,"));
}

}  // namespace
}  // namespace hcclsim
