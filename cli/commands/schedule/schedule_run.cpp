#include "cli/commands/commands.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/print/schedule/schedule_report.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

struct RunCommand {
  std::string file;
  std::uint64_t seed = 1;
  unsigned workers = 0;
  std::string format = "text";
};

void run(const RunCommand& command) {
  const study::ScheduleExecution execution = study::execute_schedule(command.file, command.seed, command.workers);
  print(command.format == "json" ? execution_json(execution, command.file, command.seed)
                                 : execution_text(execution, command.file, command.seed));
  if (!execution.check.ok()) throw Error(ErrorCode::check_failed, "schedule", command.file + " gives wrong results");
}

}  // namespace

void add_schedule_run(Command& schedule) {
  Command& command = schedule.add_command("run", "Execute a schedule on real data; status 1 if it is wrong");
  const auto options = std::make_shared<RunCommand>();
  constexpr std::uint64_t most_workers = 1024;
  command.add("FILE", read_file(options->file), "A schedule in either form").value_name("TEXT").required();
  command.add("--seed", whole_number(options->seed, 0, std::numeric_limits<std::uint64_t>::max()), "Of the random data")
      .value_name("UINT")
      .with_default();
  command
      .add("--workers", whole_number(options->workers, 0, most_workers), "Threads that compute; 0: one per processor")
      .value_name("UINT")
      .with_default();
  add_format_option(command, options->format, {"text", "json"});
  command.footer(
      "Examples:\n"
      "  hcclsim schedule run ring.txt\n"
      "  hcclsim schedule run ring.txt --seed 7 --format json");
  command.on_run([options] { run(*options); });
}

}  // namespace hcclsim::cli
