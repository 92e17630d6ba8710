#include "cli/commands/commands.hpp"

#include <memory>
#include <string>

#include "base/error.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/platform_options.hpp"
#include "cli/print/baseline.hpp"
#include "cli/print/schedule/schedule_report.hpp"

namespace hcclsim::cli {
namespace {

struct DiffCommand : PlatformChoice {  // without a platform times are not compared
  study::CompareSpec spec{};
  std::string format = "text";
  BaselineOptions regression{};
};

void diff(const DiffCommand& command) {
  ResultCheck check(command.regression, study::ResultKind::schedule_diff);
  study::CompareSpec spec = command.spec;
  spec.platform = {command.platform, command.rank_table, command.hccl_settings, {}};
  const study::ScheduleComparison comparison = study::compare_schedules(spec);
  if (command.regression.file.empty()) {  // what is known to differ may
    JunitTest test{.name = "schedules are equal"};
    if (!comparison.equal()) {
      test.outcome = JunitTest::Outcome::failed;
      test.details = comparison_text(comparison, spec);
      const std::string_view first = std::string_view(test.details).substr(0, test.details.find('\n'));
      test.message = fmt::format("{} and {} differ: {}", spec.first, spec.second, first);
    }
    check.add_test(std::move(test));
  }
  check.print_result(command.format, comparison_json(comparison, spec), comparison_text(comparison, spec));
  if (!command.regression.file.empty()) return check.require_equal();
  if (comparison.equal()) return;
  throw Error(ErrorCode::check_failed, "schedule", fmt::format("{} and {} differ", spec.first, spec.second));
}

}  // namespace

void add_schedule_diff(Command& schedule) {
  Command& command =
      schedule.add_command("diff", "Compare two schedules in structure and time; status 1 if they differ");
  const auto options = std::make_shared<DiffCommand>();
  command.add("A", read_file(options->spec.first), "A schedule in either form").value_name("TEXT").required();
  command.add("B", read_file(options->spec.second), "Another one").value_name("TEXT").required();
  add_platform_options(command, "Also compare their times on a platform file, or a shipped one by name", *options);
  add_format_option(command, options->format, {"text", "json"});
  add_baseline_options(command, options->regression);
  command.footer(
      "Examples:\n"
      "  hcclsim schedule diff golden.txt ring.txt\n"
      "  hcclsim schedule diff ring.txt hd.txt --platform atlas800-9000");
  command.on_run([&command, options] {
    with_junit(command, options->regression, name_of(study::ResultKind::schedule_diff), [&] {
      check_baseline_options(command, options->regression);
      finish_platform_options(OptionOrigins(command, {}), {}, *options);
      diff(*options);
    });
  });
}

}  // namespace hcclsim::cli
