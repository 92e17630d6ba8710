#include "cli/commands/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/platform_options.hpp"
#include "cli/print/baseline.hpp"
#include "cli/print/schedule/schedule_report.hpp"

namespace hcclsim::cli {
namespace {

struct CheckCommand : PlatformChoice {
  std::string format = "text";
  std::string levels = "L7";
  std::vector<std::string> files;
  study::CheckSpec spec{};
  BaselineOptions regression{};
};

/// "1f0c3b5a77e2d604", as the report prints it.
std::uint64_t parse_signature(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  constexpr std::size_t digits = 16;
  if (error == std::errc() && end == text.data() + text.size() && text.size() == digits) return value;
  bad_input("option", "'{}': a signature is {} hexadecimal digits, as `schedule check` prints it", text, digits);
}

/// Whether it is about the file, so that the others can be checked all the same.
bool is_of_file(const Error& error) {
  return error.kind() == "schedule" || error.kind() == "memory" || error.code() == ErrorCode::simulated_failure;
}

/// What the check found, for JUnit.
JunitTest test_of(const std::string& file, const hccl::CheckReport& report) {
  JunitTest test{.name = fmt::format("schedule {} is right", file)};
  if (report.ok) return test;
  test.outcome = JunitTest::Outcome::failed;
  test.message = report.verdict;
  for (const hccl::LevelReport& level : report.levels) {
    for (const hccl::Finding& finding : level.findings) {
      test.details += fmt::format("{} {}: {}\n", level.level, finding.kind, finding.message);
    }
    test.details += more_findings(level, level.level + ' ');
  }
  return test;
}

/// "2 of 5 schedules are refused: a.txt, b.txt".
std::string count_text(const std::vector<std::string>& some, std::size_t all, const char* what) {
  return fmt::format("{} of {} schedules {}: {}", some.size(), all, what, fmt::join(some, ", "));
}

/// Returns what is wrong, once it is printed.
std::optional<Error> check(const CheckCommand& command) {
  ResultCheck regression(command.regression, study::ResultKind::schedule_check);
  std::vector<std::string> refused;
  std::vector<std::string> unchecked;
  ErrorCode worst = ErrorCode::check_failed;
  std::string text;
  std::string json;
  const bool several = command.files.size() > 1;
  for (const std::string& file : command.files) {
    study::CheckSpec spec = command.spec;
    spec.file = file;
    spec.last_level = static_cast<std::uint32_t>(command.levels.back() - '0');
    spec.platform = {command.platform, command.rank_table, command.hccl_settings, {}};
    if (several) {
      json += json.empty() ? "[\n" : ",\n";
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", file);
    }
    try {
      const study::ScheduleCheck result = study::check_schedule(spec);
      if (!result.report.ok) refused.push_back(file);
      regression.add_test(test_of(file, result.report));
      json += check_json(result, several ? file : "");
      text += check_text(result);
    } catch (const Error& error) {
      if (!several || !is_of_file(error)) throw;
      unchecked.push_back(file);
      regression.add_test({fmt::format("schedule {} is right", file), JunitTest::Outcome::error, error.what()});
      worst = std::max(worst, error.code());
      json += unchecked_json(error, file);
      text += fmt::format("not checked: {}\n", error.what());
    }
  }
  if (several) json += "]\n";
  regression.print_result(command.format, json, text);
  if (refused.empty() && unchecked.empty()) {
    regression.require_equal();
    return std::nullopt;
  }
  if (!several) return Error(worst, "schedule", refused.front() + " is refused");
  std::string summary;
  if (!unchecked.empty()) summary = count_text(unchecked, command.files.size(), "cannot be checked");
  if (!refused.empty()) {
    summary += (summary.empty() ? "" : "; ") + count_text(refused, command.files.size(), "are refused");
  }
  return Error(worst, "schedule", summary);
}

}  // namespace

void add_schedule_check(Command& schedule) {
  Command& command = schedule.add_command("check", "Prove a schedule, or say what is wrong: docs/checker.md");
  const auto options = std::make_shared<CheckCommand>();
  command.add("FILE", read_files(options->files), "Schedules in any form; - is standard input").required();
  Option& soc =
      command.add("--soc", text(options->spec.soc), "Chip whose streams and notifies a rank has, such as 910B2");
  add_platform_options(command,
                       "The same of a platform (file, or name of a shipped one); also its bounds (L7), time (L8) and "
                       "conservation (L9)",
                       *options);
  command.get("--platform").excludes(soc);
  command
      .add("--queue-depth", whole_number(options->spec.queue_depth, 0, std::numeric_limits<std::uint32_t>::max()),
           "Tasks that a stream takes in advance; 0: any number")
      .value_name("UINT")
      .with_default();
  command.add("--order", parsed(parse_signature, options->spec.recorded_order),
              "Signature of the order of reduction that it must have (L5)");
  command
      .add("--levels", one_of({"L0", "L1", "L2", "L3", "L4", "L5", "L7"}, options->levels),
           "The highest level to check")
      .value_name("TEXT")
      .with_default();
  command.add("--run", flag(options->spec.run), "Also execute it on real data (L6)");
  add_format_option(command, options->format, {"text", "json"});
  add_baseline_options(command, options->regression);
  command.footer(
      "Examples:\n"
      "  hcclsim schedule check ring.txt --run\n"
      "  hcclsim schedule check ring.txt --platform atlas800-9000 --format json\n"
      "  hcclsim schedule generate --bytes 4M | hcclsim schedule check - --soc 910A");
  command.on_run([&command, options] {
    std::optional<Error> wrong;
    with_junit(command, options->regression, name_of(study::ResultKind::schedule_check), [&] {
      check_baseline_options(command, options->regression);
      finish_platform_options(OptionOrigins(command, {}), {}, *options);
      wrong = check(*options);
    });
    if (wrong.has_value()) throw Error(*wrong);
  });
}

}  // namespace hcclsim::cli
