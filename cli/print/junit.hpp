#pragma once

#include <string>
#include <utility>
#include <vector>

/// Results for CI systems in the XML form of JUnit, which Jenkins, GitLab and others read. It has no dates and no wall
/// times, so that the same run makes the same bytes.
namespace hcclsim::cli {

struct JunitTest {
  enum class Outcome { passed, failed, skipped, error };
  std::string name;
  Outcome outcome = Outcome::passed;
  std::string message{};  ///< one line: why it did not pass
  std::string details{};  ///< lines
};

struct JunitSuite {
  std::string name;
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<JunitTest> tests;
};

/// The document. Characters that XML cannot hold are replaced by U+FFFD.
[[nodiscard]] std::string junit_xml(const JunitSuite& suite);

}  // namespace hcclsim::cli
