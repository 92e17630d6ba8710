#include "sim/platform/check.hpp"
#include "sim/platform/document.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.hpp"
#include "sim/platform/generate.hpp"

namespace hcclsim::sim {
namespace {

using testing::HasSubstr;

const std::string data = std::string(HCCLSIM_TEST_DATA) + "/platforms/bad/";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file in a folder of its own that is removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& contents) {
    std::string folder = testing::TempDir() + "/platform_XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    std::ofstream(path(), std::ios::binary) << contents;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/platform.xml"; }

 private:
  std::string folder_;
};

std::string print(const std::vector<PlatformProblem>& problems) {
  std::string text;
  for (const PlatformProblem& problem : problems) {
    text += fmt::format("{}: {}{}\n", problem.line, problem.fatal ? "" : "warning ", problem.message);
  }
  return text;
}

struct BadCase {
  std::string name, file, replace, with;
  std::vector<std::string> expected;  ///< "LINE: part of the message"
};

std::string with_line_breaks(std::string text) {
  for (std::size_t at = text.find("\\n"); at != std::string::npos; at = text.find("\\n", at))
    text.replace(at, 2, 1, '\n');
  return text;
}

std::vector<BadCase> read_cases() {
  std::vector<BadCase> cases;
  std::istringstream lines(read(data + "cases.txt"));
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find(' '));
    const std::string value = line.size() > key.size() ? line.substr(key.size() + 1) : "";
    if (key == "case") {
      cases.push_back({value, "", "", "", {}});
    } else if (key == "file") {
      cases.back().file = value;
    } else if (key == "replace") {
      cases.back().replace = with_line_breaks(value);
    } else if (key == "with") {
      cases.back().with = with_line_breaks(value);
    } else if (key == "expect") {
      cases.back().expected.push_back(value);
    } else if (!key.empty() && key[0] != '#') {
      ADD_FAILURE() << "cases.txt: unknown line: " << line;
    }
  }
  return cases;
}

TEST(PlatformCheck, FindsEveryProblemOfTheBadFilesWithItsLine) {
  const std::vector<BadCase> cases = read_cases();
  EXPECT_GT(cases.size(), 75U);
  for (const BadCase& bad : cases) {
    SCOPED_TRACE(bad.name);
    std::string text = read(data + bad.file);
    const std::size_t at = text.find(bad.replace);
    ASSERT_NE(at, std::string::npos) << "not in the file: " << bad.replace;
    ASSERT_EQ(text.find(bad.replace, at + 1), std::string::npos) << "more than once: " << bad.replace;
    text.replace(at, bad.replace.size(), bad.with);
    const TemporaryFile file(text);
    const std::vector<PlatformProblem> problems = check_platform(file.path());
    ASSERT_FALSE(bad.expected.empty());
    ASSERT_EQ(problems.size(), bad.expected.size()) << print(problems);
    bool fatal = false;
    for (std::size_t i = 0; i < problems.size(); ++i) {
      const std::size_t colon = bad.expected[i].find(": ");
      std::string part = bad.expected[i].substr(colon + 2);
      const bool warning = part.starts_with("warning ");
      if (warning) part.erase(0, std::string("warning ").size());
      EXPECT_EQ(problems[i].line, std::stoul(bad.expected[i])) << print(problems);
      EXPECT_EQ(problems[i].fatal, !warning) << print(problems);
      EXPECT_THAT(problems[i].message, HasSubstr(part));
      fatal = fatal || !warning;
    }
    if (!fatal) {
      EXPECT_NO_THROW(static_cast<void>(valid_platform(file.path())));
      continue;
    }
    try {
      static_cast<void>(valid_platform(file.path()));
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      EXPECT_EQ(error.kind(), "platform");
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("{}:", file.path())));
    }
  }
}

TEST(PlatformCheck, AcceptsTheFilesThatTheCasesChange) {
  EXPECT_EQ(print(check_platform(data + "star.xml")), "");
  EXPECT_EQ(print(check_platform(data + "nested.xml")), "");
}

TEST(PlatformCheck, SaysWhyAFileCannotBeRead) {
  const auto problem = [](const std::string& path) -> std::string {
    try {
      static_cast<void>(check_platform(path));
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(problem(data + "missing.xml"), "cannot read " + data + "missing.xml: No such file or directory");
  EXPECT_EQ(problem(data), "cannot read " + data + ": it is a folder");
  EXPECT_EQ(problem("/proc/self/mem"), "cannot read /proc/self/mem: Input/output error");
}

TEST(PlatformCheck, NeedsARootElement) {
  for (const char* const text : {"", "  \n", "<?xml version='1.0'?>\n", "<!-- nothing -->\n"}) {
    const TemporaryFile file(text);
    EXPECT_THAT(print(check_platform(file.path())), HasSubstr("1: no root element")) << text;
  }
  const std::string type = "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">";
  const TemporaryFile empty(type + "<platform version=\"4.1\"/>");
  EXPECT_EQ(print(check_platform(empty.path())), "1: <platform> is empty: it must hold a zone with hosts\n");
  const TemporaryFile other(type + "<!-- a\nb -->\n<svg/>");
  EXPECT_EQ(print(check_platform(other.path())), "3: the root element is <svg>, must be <platform>\n");
  const TemporaryFile binary(
      std::string("\x7f"
                  "ELF\0\1\2",
                  7));
  EXPECT_FALSE(check_platform(binary.path()).empty());
}

TEST(PlatformCheck, RefusesProfilesByName) {
  const std::string text = read(data + "star.xml");
  for (const char* const profile : {"bandwidth_file", "latency_file", "state_file"}) {
    std::string with = text;
    with.replace(with.find("latency=\"1us\""), 13, fmt::format("latency=\"1us\" {}=\"platform.xml\"", profile));
    EXPECT_THAT(print(check_platform(TemporaryFile(with).path())),
                HasSubstr(fmt::format("17: link roce-0: {} 'platform.xml': hcclsim takes no profiles", profile)));
  }
  for (const char* const profile : {"speed_file", "availability_file", "state_file"}) {
    std::string with = text;
    with.replace(with.find("speed=\"1Tf\""), 11, fmt::format("speed=\"1Tf\" {}=\"a.profile\"", profile));
    EXPECT_THAT(print(check_platform(TemporaryFile(with).path())),
                HasSubstr(fmt::format("7: host npu-0: {} 'a.profile': hcclsim takes no profiles", profile)));
  }
}

TEST(PlatformCheck, NamesTheNumberOfOtherProblems) {
  std::string text = read(data + "star.xml");
  text.replace(text.find("14GBps"), 6, "0GBps");
  text.replace(text.find("1us"), 3, "-1us");
  const TemporaryFile file(text);
  try {
    static_cast<void>(valid_platform(file.path()));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("platform.xml:17: link roce-0: latency '-1us' is negative (and 1 more:"));
  }
}

/// What is said of two generated super-pods of one server with two dies, with a part of the file replaced.
std::string of_super_pods(const std::string& part, const std::string& other) {
  std::string text = generate_platform({.soc = "910_9391", .servers = 2, .npus_per_server = 2, .super_pods = {1, 1}});
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  text.replace(at, part.size(), other);
  const TemporaryFile file(text);
  return print(check_platform(file.path()));
}

TEST(PlatformCheck, SuperPodsHavePortsAndWholeServers) {
  const std::string of_first = R"(<prop id="super_pod" value="0"/>)";
  EXPECT_EQ(of_super_pods(of_first, of_first), "");
  EXPECT_THAT(of_super_pods(of_first, R"(<prop id="super_pod" value="first"/>)"),
              HasSubstr("property 'super_pod' is 'first', must be a whole number"));
  EXPECT_THAT(of_super_pods(of_first, R"(<prop id="super_pod" value="1"/>)"),
              HasSubstr("host 'npu-1' of server 0 is in super-pod 0, others of the server are in 1"));
  EXPECT_THAT(of_super_pods(of_first, ""), HasSubstr("3 of 4 NPUs have the property super_pod"));
  EXPECT_THAT(of_super_pods(R"(<prop id="roce" value="roce-2"/>)", ""),
              HasSubstr("host 'npu-2' has the property super_pod but not roce, its port to others"));
  EXPECT_THAT(of_super_pods(R"(src="super-pod-0" dst="super-pod-1")", R"(src="super-pod-0" dst="super-pod-0")"),
              HasSubstr("has no route from 'super-pod-0' to 'super-pod-1'"));
}

TEST(PlatformCheck, AcceptsWhatTheGeneratorWrites) {
  for (const char* const fabric : {"star", "fat-tree", "fat-tree:levels=3,oversubscription=4", "fat-tree:leaf=rail"}) {
    PlatformOptions options;
    options.soc = "910A";
    options.servers = 64;
    options.fabric = parse_fabric(fabric);
    const TemporaryFile file(generate_platform(options));
    EXPECT_EQ(print(check_platform(file.path())), "") << fabric;
  }
}

}  // namespace
}  // namespace hcclsim::sim
