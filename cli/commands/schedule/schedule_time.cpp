#include "cli/commands/commands.hpp"

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cli/options/collective_choice.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/print/baseline.hpp"
#include "cli/print/failure.hpp"
#include "cli/print/schedule/schedule_report.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

struct TimeCommand : PlatformChoice {
  std::string format = "text";
  std::string launch = "graph";
  std::vector<std::string> files;
  std::uint32_t links = 0;
  study::TimeSpec spec{};
  BaselineOptions regression{};
};

/// "FILE@LIST" with the NPUs of the ranks; a file with all of that as its name comes first.
study::TimedFile timed_file(const std::string& given) {
  const std::size_t at = given.rfind('@');
  if (at == std::string::npos || std::filesystem::exists(given)) return {given};
  try {
    const std::vector<Rank> npus = parse_ranks_in_order(std::string_view(given).substr(at + 1));
    if (std::set<Rank>(npus.begin(), npus.end()).size() == npus.size()) return {given.substr(0, at), npus, given};
  } catch (const Error& error) {
    bad_input("option", "{}: {}", given, error.what());
  }
  bad_input("option", "{}: an NPU is named twice; each rank has one of its own", given);
}

void time_schedules(const TimeCommand& command) {
  ResultCheck regression(command.regression, study::ResultKind::schedule_time);
  study::TimeSpec spec = command.spec;
  spec.platform = command.platform_spec();
  for (const std::string& file : command.files) spec.files.push_back(timed_file(file));
  spec.launch = hccl::parse_launch_mode(command.launch);
  spec.links = command.links;
  const study::ScheduleTimes times = study::time_schedules(spec);
  if (command.format == "csv") print_remarks_apart(times.on.unmodelled, times.on.notes);
  regression.print_result(command.format, times_json(times, spec),
                          command.format == "csv" ? times_csv(times) : times_text(times, spec));
  regression.require_equal();
}

}  // namespace

void add_schedule_time(Command& schedule) {
  Command& command = schedule.add_command("time", "Simulate schedules on a platform");
  const auto options = std::make_shared<TimeCommand>();
  options->platform = "atlas800-9000";
  command
      .add("FILE", read_files(options->files),
           "Schedules in any form; FILE@0-3 or FILE@0,2,4,6: on these NPUs, one for each rank in this order; "
           "/dev/stdin@LIST: standard input")
      .required();
  add_platform_options(command, "A platform file, or the name of a shipped one", *options);
  command.add("--together", flag(options->spec.together), "Also all at the same time, sharing the links");
  add_repetition_options(command, "--iterations", options->spec.iterations, "--warmups", options->spec.warmups);
  add_launch_option(command, options->launch, "graph: tasks are loaded in advance; op: the host launches each");
  add_network_option(command, options->spec.network);
  add_faults(command, options->spec.faults);
  add_links_option(command, options->links);
  add_format_option(command, options->format, {"text", "json", "csv"});
  add_baseline_options(command, options->regression);
  command.footer(
      "Examples:\n"
      "  hcclsim schedule time ring.txt hd.txt --platform atlas800-9000\n"
      "  hcclsim schedule time a.txt b.txt --together --iterations 20 --warmups 10 --launch op\n"
      "  hcclsim schedule time four.txt@0-3 four.txt@4-7 --together");
  command.on_run([&command, options] {
    with_junit(command, options->regression, name_of(study::ResultKind::schedule_time), [&] {
      check_baseline_options(command, options->regression);
      finish_platform_options(OptionOrigins(command, {}), {}, *options);
      with_failure(options->format == "json", [&] { time_schedules(*options); });
    });
  });
}

}  // namespace hcclsim::cli
