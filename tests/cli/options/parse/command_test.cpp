// Commands and options: what is declared, parsed, refused and shown.

#include "cli/options/parse/command.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The message of the refusal of arguments.
std::string refusal_of(Command& command, const std::vector<std::string>& arguments) {
  try {
    static_cast<void>(command.parse(arguments));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  ADD_FAILURE() << "no error for " << testing::PrintToString(arguments);
  return {};
}

TEST(Command, KindsOfValues) {
  std::string name = "a";
  std::uint32_t count = 3;
  std::optional<std::uint64_t> optional;
  double factor = 0.5;
  bool on = false;
  bool given = false;
  std::string word = "x";
  std::vector<std::string> files;
  std::vector<double> numbers;
  Command command("test", "A test");
  command.add("--name", text(name), "");
  command.add("-c,--count", whole_number(count, 1, 9), "");
  command.add("--optional", whole_number(optional, 0, UINT64_MAX), "");
  command.add("--factor", number(factor, 0, 1), "");
  command.add("--switch", on_off(on), "");
  command.add("--flag", flag(given), "");
  command.add("--word", one_of({"x", "y"}, word), "");
  command.add("--numbers", parsed(parse_number_list, numbers), "");
  command.add("FILE", read_files(files), "");
  EXPECT_EQ(command.parse({"f", "--name", "b", "-c", "4", "--optional", "18446744073709551615", "--factor=0.25", "g",
                           "--switch", "on", "--flag", "--word", "y", "--numbers", "1,2.5"}),
            std::nullopt);
  EXPECT_EQ(name, "b");
  EXPECT_EQ(count, 4U);
  EXPECT_EQ(optional, UINT64_MAX);
  EXPECT_EQ(factor, 0.25);
  EXPECT_TRUE(on);
  EXPECT_TRUE(given);
  EXPECT_EQ(word, "y");
  EXPECT_THAT(numbers, ElementsAre(1, 2.5));
  EXPECT_THAT(files, ElementsAre("f", "g"));
}

TEST(Command, RefusalsSayWhatIsAccepted) {
  std::uint32_t count = 3;
  double factor = 0;
  std::string word = "north";
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--count", "0"}, "--count: '0' is not accepted; give a whole number from 1 to 9"},
      {{"--count", "1.5"}, "--count: '1.5' is not accepted; give a whole number from 1 to 9"},
      {{"--count", "-1"}, "--count: '-1' is not accepted; give a whole number from 1 to 9"},
      {{"--count", "99999999999999999999"}, "is not accepted; give a whole number from 1 to 9"},
      {{"--count"}, "--count"},
      {{"--count", "1", "--count", "2"}, "--count"},
      {{"--factor", "nan"}, "--factor: 'nan' is not accepted; give a number from -1 to 1"},
      {{"--factor", "1.1"}, "--factor: '1.1' is not accepted; give a number from -1 to 1"},
      {{"--word", "nort"}, "--word: 'nort' is not accepted; give one of north, south; did you mean north?"},
      {{"--wrd", "north"}, "unknown option --wrd; did you mean --word?"},
      {{"more"}, "unexpected argument 'more'"}};
  for (const auto& [arguments, message] : wrong) {
    SCOPED_TRACE(message);
    Command command("test", "A test");
    command.add("--count", whole_number(count, 1, 9), "");
    command.add("--factor", number(factor, -1, 1), "");
    command.add("--word", one_of({"north", "south"}, word), "");
    EXPECT_THAT(refusal_of(command, arguments), HasSubstr(message));
    EXPECT_THAT(refusal_of(command, arguments), HasSubstr("\nSee 'test --help'."));
  }
  EXPECT_EQ(count, 3U);
}

TEST(Command, HelpShowsWhatIsAcceptedAndTheDefault) {
  std::uint32_t count = 3;
  std::string file = "out.xml";
  std::string input;
  bool given = false;
  Command command("test", "A test");
  command.add("FILE", read_file(input), "An input").required();
  command.begin_group("Sizes");
  command.add("-c,--count", whole_number(count, 1, 9), "A count").with_default();
  command.begin_group();
  command.add("-o,--output", written_file(file), "Where it goes").with_default();
  command.add("--flag", flag(given), "A flag");
  command.add("--hidden", flag(given), "Not shown").refuse("not here, but there");
  command.footer("The end.");
  const std::string help = command.parse({"--help"}).value();
  EXPECT_THAT(help, HasSubstr("FILE FILE REQUIRED"));
  EXPECT_THAT(help, HasSubstr("\nSizes:\n  -c,--count 1..9 [3]"));
  EXPECT_THAT(help, HasSubstr("\n  -o,--output FILE [out.xml]"));
  EXPECT_THAT(help, HasSubstr("\n  --flag "));
  EXPECT_THAT(help, Not(HasSubstr("hidden")));
  EXPECT_THAT(help, HasSubstr("\nThe end."));
  EXPECT_THAT(refusal_of(command, {}), HasSubstr("FILE is required"));
  EXPECT_THAT(refusal_of(command, {"in.xml", "--hidden"}), HasSubstr("--hidden: not here, but there\nSee"));
}

TEST(Command, SubCommandsAreDeclaredWhenTheyAreNamed) {
  std::vector<std::string> declared;
  std::vector<std::string> runs;
  const auto make = [&](Command& app) {
    app.require_command();
    app.version("1.2");
    app.add_command("first", "The first", [&](Command& command) {
      declared.emplace_back("first");
      command.require_command();
      command.add_command("inner", "Inside", [&](Command& inner) {
        declared.emplace_back("inner");
        inner.on_run([&] { runs.emplace_back("inner"); });
      });
    });
    app.add_command("second", "The second", [&](Command& command) {
      declared.emplace_back("second");
      command.on_run([&] { runs.emplace_back("second"); });
    });
  };
  Command one("app", "An app");
  make(one);
  EXPECT_EQ(one.parse({"first", "inner"}), std::nullopt);
  EXPECT_THAT(declared, ElementsAre("first", "inner"));
  EXPECT_THAT(runs, ElementsAre("inner"));
  Command two("app", "An app");
  make(two);
  EXPECT_THAT(refusal_of(two, {"secnd"}), HasSubstr("unknown command 'secnd'; did you mean second?"));
  EXPECT_THAT(refusal_of(two, {}), HasSubstr("a command is required; commands: first, second"));
  EXPECT_EQ(two.parse({"--version"}), "app 1.2\n");
  EXPECT_THAT(two.parse({"--help"}).value(), HasSubstr("The second"));
  Command three("app", "An app");
  make(three);
  EXPECT_THAT(three.parse({"--help", "second"}).value(), HasSubstr("Usage: app second"));
  // What stands before a command is wrong, but does not hide it.
  for (const char* const before : {"word", "", "--wrong"}) {
    SCOPED_TRACE(fmt::format("before it '{}'", before));
    Command four("app", "An app");
    make(four);
    declared.clear();
    EXPECT_THAT(refusal_of(four, {before, "first", "inner"}), HasSubstr("See 'app first inner --help'."));
    EXPECT_THAT(declared, ElementsAre("first", "inner"));
  }
}

TEST(Command, WhatExcludesEachOther) {
  bool first = false;
  bool second = false;
  bool third = false;
  Command command("test", "A test");
  Option& one = command.add("--first", flag(first), "");
  command.add("--second", flag(second), "").excludes(one);
  Command& views = command.add_alternatives("Table");
  views.add("--rows", flag(third), "");
  views.add("--columns", flag(third), "");
  EXPECT_THAT(refusal_of(command, {"--first", "--second"}), HasSubstr("excludes"));
  EXPECT_THAT(refusal_of(command, {"--rows", "--columns"}), Not(IsEmpty()));
  EXPECT_EQ(command.parse({"--rows"}), std::nullopt);
  EXPECT_TRUE(third);
}

TEST(Command, OptionsByName) {
  std::string file;
  std::string name;
  std::vector<std::string> list;
  Command command("test", "A test");
  command.add("INPUT", read_file(file), "");
  command.add("-n,--name", text(name), "");
  Value values = texts(list);
  values.count = Count::list;
  command.add("--list", values, "").not_in_files();
  EXPECT_EQ(command.find("--none"), nullptr);
  EXPECT_EQ(command.find("--name"), command.find("-n"));
  const Option& input = command.get("INPUT");
  EXPECT_EQ(input.name(), "INPUT");
  EXPECT_EQ(input.key(), "");
  EXPECT_EQ(input.role(), Role::reads_file);
  Option& option = command.get("--name");
  EXPECT_EQ(option.key(), "name");
  EXPECT_EQ(option.short_name(), "n");
  EXPECT_FALSE(option.given());
  option.add("a");
  EXPECT_EQ(name, "a");
  option.replace("b");
  EXPECT_EQ(name, "b");
  EXPECT_THAT(option.texts(), ElementsAre("b"));
  option.replace(std::nullopt);
  EXPECT_FALSE(option.given());
  command.get("--list").add("x,y");
  EXPECT_THAT(list, ElementsAre("x", "y"));
  EXPECT_FALSE(command.get("--list").is_in_files());
  EXPECT_THAT(command.option_names(), ElementsAre("--help", "--name", "--list"));
  command.remove(option);
  EXPECT_EQ(command.find("--name"), nullptr);
}

TEST(Command, NoFileIsReadAndWritten) {
  std::string input;
  std::string output;
  std::string other;
  std::string word;
  bool ran = false;
  Command command("test", "A test");
  command.add("WORD", text(word), "").required();
  command.add("--input", read_file(input), "");
  command.add("--output", written_file(output), "");
  command.add("--other", written_file(other), "");
  command.on_run([&] { ran = true; });
  EXPECT_EQ(refusal_of(command, {"w", "--input", "same", "--output", "./same"}),
            "--output ./same: that file is read as --input; give another");
  EXPECT_EQ(refusal_of(command, {"w", "--other", "same", "--output", "same"}),
            "--output and --other both write same; give two files");
  EXPECT_FALSE(ran);
  EXPECT_EQ(command.parse({"same", "--output", "same"}), std::nullopt);  // a word is no file
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace hcclsim::cli
