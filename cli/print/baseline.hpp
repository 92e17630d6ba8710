#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/print/run_report.hpp"

/// `hcclsim run --baseline FILE --tolerance T --junit FILE`: the run against a stored one, and its result for CI
/// systems.
namespace hcclsim::cli {

class Command;

struct BaselineOptions {
  std::string file;                              ///< empty: none
  double tolerance = study::rounding_tolerance;  ///< relative
  std::string junit;                             ///< file; empty: none
};

/// Adds the options.
void add_baseline_options(Command& command, BaselineOptions& options);
/// Throws Error(bad_input, "option") for options that do not go together.
void check_baseline_options(const Command& command, const BaselineOptions& options);

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

/// Throws Error(check_failed, "baseline") with the first difference, if there is one.
void require_baseline(const RunReport& report);

/// Writes a file for JUnit that says why there is no result, if one is wanted and can be written without harm. A check
/// that failed has written its own.
void write_junit_failure(const Command& command, const BaselineOptions& options, const Error& error);

/// The comparison as a table of differences, and as JSON.
[[nodiscard]] std::string baseline_text(const BaselineReport& baseline);
[[nodiscard]] Json baseline_json(const BaselineReport& baseline);

}  // namespace hcclsim::cli
