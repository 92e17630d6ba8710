#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/options/baseline_options.hpp"
#include "cli/print/junit.hpp"
#include "cli/print/run/run_report.hpp"
#include "study/compare/baseline/result_baseline.hpp"

/// `--baseline FILE --tolerance T --junit FILE` of the commands that measure or check something: the result against a
/// stored one, and for CI systems.
namespace hcclsim::cli {

/// Reads the baseline and opens the file for JUnit before the simulation, so that what is wrong with them is known at
/// once.
class RegressionCheck {
 public:
  /// Throws Error(bad_input) of kind "baseline" or "output".
  explicit RegressionCheck(const BaselineOptions& options);

  /// Adds the comparison to the report, if there is a baseline.
  void compare(RunReport& report) const;
  /// Writes the file for JUnit, if one is wanted; it appears with commit().
  void write_junit(const RunReport& report);
  void commit();

 private:
  const BaselineOptions& options_;
  std::optional<Json> baseline_;
  std::vector<OutputFile> junit_;  // one or none
};

/// The same for the other commands.
class ResultCheck {
 public:
  /// Throws Error(bad_input) of kind "baseline" or "output".
  ResultCheck(const BaselineOptions& options, study::ResultKind kind);

  /// Prints a result as `format` says: its JSON form with the comparison, or the other one with the table of
  /// differences behind a text. Writes the file for JUnit.
  void print_result(const std::string& format, const std::string& json, const std::string& other);
  /// A test of its own for JUnit, beside the figures; before print_result().
  void add_test(JunitTest test) { tests_.push_back(std::move(test)); }
  /// Throws Error(check_failed, "baseline") with the first difference, if there is one.
  void require_equal() const;

 private:
  const BaselineOptions& options_;
  study::ResultKind kind_;
  std::optional<Json> baseline_;
  std::vector<OutputFile> junit_;  // one or none
  std::optional<BaselineReport> report_;
  std::vector<JunitTest> tests_;
};

/// Throws Error(check_failed, "baseline") with the first difference, if there is one.
void require_baseline(const std::optional<BaselineReport>& baseline);

void write_junit_failure(const Command& command, const BaselineOptions& options, std::string_view name,
                         const Error& error);
/// Carries out a command; what it throws is also written to the file for JUnit, if one is wanted and can be written
/// without harm, as the reason why there is no result. A check that failed has written its own. What is told
/// behind a whole result is thrown outside of it.
template <typename Work>
void with_junit(const Command& command, const BaselineOptions& options, std::string_view name, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    write_junit_failure(command, options, name, error);
    throw;
  }
}

/// The comparison as a table of differences, and as JSON.
[[nodiscard]] std::string baseline_text(const BaselineReport& baseline);
[[nodiscard]] Json baseline_json(const BaselineReport& baseline);

}  // namespace hcclsim::cli
