#include "cli/print/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/overwriting.hpp"
#include "cli/print/junit.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/version.hpp"
#include "study/run/numerics/numerics.hpp"

namespace hcclsim::cli {
namespace {

using study::BaselineComparison;
using study::ComparedPart;
using study::Difference;

std::string suite_name(std::string_view command) { return fmt::format("hcclsim {}", command); }

std::string text_of(const Json& value) { return value.dump(); }

std::string now_of(const Difference& difference) {
  const bool is_missing = difference.after.is_null() && !difference.before.is_null();
  return is_missing ? "missing in this run" : text_of(difference.after);
}

std::string change_of(const Difference& difference) {
  return difference.relative.has_value() ? fmt::format("{:+.3g} %", *difference.relative * 100) : std::string();
}

/// "segment 2 [108,160] on rank 0: end_s 0.0168 -> 0.017 (+1.19 %)".
std::string sentence(const Difference& difference) {
  const std::string change = change_of(difference);
  return fmt::format("{}: {} {} -> {}{}", difference.place, difference.figure, text_of(difference.before),
                     now_of(difference), change.empty() ? "" : fmt::format(" ({})", change));
}

/// "12 of 340 figures differ (numbers may by 1 %)".
std::string verdict(const BaselineComparison& comparison) {
  const std::string limit = comparison.tolerance > study::rounding_tolerance
                                ? fmt::format(" (numbers may by {:g} %)", comparison.tolerance * 100)
                                : std::string();
  if (comparison.differences() == 0) return fmt::format("none of {} figures differs{}", comparison.figures(), limit);
  return fmt::format("{} of {} figures differ{}", comparison.differences(), comparison.figures(), limit);
}

JunitTest test_of(const ComparedPart& part) {
  JunitTest test{.name = part.name};
  if (part.differences.empty()) return test;
  test.outcome = JunitTest::Outcome::failed;
  test.message = sentence(part.differences.front());
  if (part.differences.size() > 1) test.message += fmt::format(", and {} more", part.differences.size() - 1);
  for (const Difference& difference : part.differences) test.details += sentence(difference) + '\n';
  return test;
}

/// Whether the real numbers are what they must be.
JunitTest test_of(const study::NumericsResult& numerics) {
  JunitTest test{.name = "exact reductions"};
  try {
    study::require_exact(numerics);
  } catch (const Error& error) {
    test.outcome = JunitTest::Outcome::failed;
    test.message = error.what();
  }
  return test;
}

void add_baseline(std::vector<std::pair<std::string, std::string>>& properties,
                  const std::optional<BaselineReport>& baseline) {
  if (!baseline.has_value()) return;
  properties.emplace_back("baseline", baseline->file);
  properties.emplace_back("tolerance", fmt::format("{}", baseline->comparison.tolerance));
}

std::vector<std::pair<std::string, std::string>> properties_of(const RunReport& report) {
  std::vector<std::pair<std::string, std::string>> properties{{"hcclsim", std::string(version())},
                                                              {"model", report.model},
                                                              {"platform", report.platform},
                                                              {"npus", std::to_string(report.npus)},
                                                              {"batch", std::to_string(report.program->batch)},
                                                              {"rank", std::to_string(report.rank)},
                                                              {"split", report.split},
                                                              {"step_time_s", fmt::format("{}", report.step_time())}};
  add_baseline(properties, report.baseline);
  return properties;
}

/// Without a baseline there is nothing to hold the parts against; they are those of `with_itself`.
template <typename Compare>
std::vector<JunitTest> tests_of(const std::optional<BaselineReport>& baseline, const Compare& with_itself) {
  std::vector<JunitTest> tests;
  if (baseline.has_value()) {
    for (const ComparedPart& part : baseline->comparison.parts) tests.push_back(test_of(part));
    return tests;
  }
  const BaselineComparison itself = with_itself();
  for (const ComparedPart& part : itself.parts) {
    tests.push_back({part.name, JunitTest::Outcome::skipped, "no --baseline to compare with"});
  }
  return tests;
}

std::vector<JunitTest> tests_of(const RunReport& report) {
  std::vector<JunitTest> tests = tests_of(report.baseline, [&] {
    const Json run = Json::parse(json_report(report));
    return study::compare_runs(run, run, 0);
  });
  if (report.numerics.has_value()) tests.push_back(test_of(*report.numerics));
  return tests;
}

}  // namespace

RegressionCheck::RegressionCheck(const BaselineOptions& options) : options_(options) {
  if (!options.file.empty()) baseline_ = study::read_baseline(options.file);
  if (!options.junit.empty()) junit_.emplace_back(options.junit);
}

void RegressionCheck::compare(RunReport& report) const {
  if (!baseline_.has_value()) return;
  const Json run = Json::parse(json_report(report));
  report.baseline = {options_.file, study::compare_runs(*baseline_, run, options_.tolerance)};
}

void RegressionCheck::write_junit(const RunReport& report) {
  for (OutputFile& file : junit_) file.write(junit_xml({suite_name("run"), properties_of(report), tests_of(report)}));
}

void RegressionCheck::commit() {
  for (OutputFile& file : junit_) file.commit();
}

ResultCheck::ResultCheck(const BaselineOptions& options, study::ResultKind kind) : options_(options), kind_(kind) {
  if (!options.file.empty()) baseline_ = study::read_baseline(options.file, kind);
  if (!options.junit.empty()) junit_.emplace_back(options.junit);
}

void ResultCheck::print_result(const std::string& format, const std::string& json, const std::string& other) {
  Json result;
  if (baseline_.has_value() || !junit_.empty()) result = Json::parse(json);
  if (baseline_.has_value()) {
    report_ = {options_.file, study::compare_results(kind_, *baseline_, result, options_.tolerance)};
  }
  for (OutputFile& file : junit_) {
    std::vector<std::pair<std::string, std::string>> properties{{"hcclsim", std::string(version())}};
    add_baseline(properties, report_);
    std::vector<JunitTest> tests = tests_;
    for (JunitTest& test : tests_of(report_, [&] { return study::compare_results(kind_, result, result, 0); })) {
      tests.push_back(std::move(test));
    }
    file.write(junit_xml({suite_name(name_of(kind_)), properties, tests}));
  }
  if (format != "json") {
    print(other + (report_.has_value() && format == "text" ? baseline_text(*report_) : ""));
  } else if (!report_.has_value()) {
    print(json);
  } else {
    // Of several files the result is a list, whose last element the comparison becomes.
    if (result.is_array()) {
      result.push_back({{"baseline", baseline_json(*report_)}});
    } else {
      result["baseline"] = baseline_json(*report_);
    }
    print(result.dump(2) + '\n');
  }
  for (OutputFile& file : junit_) file.commit();
}

void ResultCheck::require_equal() const { require_baseline(report_); }

void require_baseline(const std::optional<BaselineReport>& baseline) {
  if (!baseline.has_value()) return;
  const BaselineComparison& comparison = baseline->comparison;
  for (const ComparedPart& part : comparison.parts) {
    if (part.differences.empty()) continue;
    throw Error(
        ErrorCode::check_failed, "baseline",
        fmt::format("{}: {}; the first: {}", baseline->file, verdict(comparison), sentence(part.differences.front())));
  }
}

void write_junit_failure(const Command& command, const BaselineOptions& options, std::string_view name,
                         const Error& error) {
  const bool is_written = error.code() == ErrorCode::check_failed;
  if (is_written || options.junit.empty() || options.junit == "-" || !overwriting(command).empty()) return;
  const JunitTest test{.name = "simulation",
                       .outcome = JunitTest::Outcome::error,
                       .message = error.what(),
                       .details = fmt::format("kind: {}\n", error.kind())};
  try {
    write_file_atomically(options.junit, junit_xml({suite_name(name), {{"hcclsim", std::string(version())}}, {test}}));
  } catch (const Error&) {
    return;  // the first error is the one to tell
  }
}

std::string baseline_text(const BaselineReport& baseline) {
  constexpr std::size_t most_rows = 20;
  const BaselineComparison& comparison = baseline.comparison;
  std::string text = fmt::format("Baseline {}: {}.\n", baseline.file, verdict(comparison));
  std::vector<const Difference*> differences;
  for (const ComparedPart& part : comparison.parts) {
    for (const Difference& difference : part.differences) differences.push_back(&difference);
  }
  if (differences.empty()) return text;
  // What has no size, such as a name, comes first, then the largest.
  const auto size = [](const Difference* difference) {
    return difference->relative.has_value() ? std::abs(*difference->relative) : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(differences.begin(), differences.end(),
                   [&](const Difference* a, const Difference* b) { return size(a) > size(b); });
  Table table({{"where", Table::Align::left}, {"figure", Table::Align::left}, {"baseline"}, {"now"}, {"change"}});
  for (std::size_t i = 0; i < std::min(differences.size(), most_rows); ++i) {
    const Difference& difference = *differences[i];
    table.add_row(
        {difference.place, difference.figure, text_of(difference.before), now_of(difference), change_of(difference)});
  }
  text += table.to_string("  ");
  if (differences.size() > most_rows) text += fmt::format("  … and {} more\n", differences.size() - most_rows);
  return text;
}

Json baseline_json(const BaselineReport& baseline) {
  const BaselineComparison& comparison = baseline.comparison;
  Json differences = Json::array();
  for (const ComparedPart& part : comparison.parts) {
    for (const Difference& difference : part.differences) {
      differences.push_back(
          {{"part", part.name},
           {"place", difference.place},
           {"figure", difference.figure},
           {"baseline", difference.before},
           {"now", difference.after},
           {"relative", difference.relative.has_value() ? Json(*difference.relative) : Json(nullptr)}});
    }
  }
  return {{"file", baseline.file},
          {"tolerance", comparison.tolerance},
          {"equal", comparison.differences() == 0},
          {"figures", comparison.figures()},
          {"differences", std::move(differences)}};
}

}  // namespace hcclsim::cli
