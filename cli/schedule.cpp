#include "cli/schedule.hpp"

#include <memory>
#include <string>

#include "cli/output.hpp"
#include "cli/schedule_check.hpp"
#include "cli/schedule_diff.hpp"
#include "cli/schedule_generate.hpp"
#include "cli/schedule_run.hpp"
#include "cli/schedule_show.hpp"
#include "cli/schedule_time.hpp"
#include "hccl/schedule/file/schedule_file.hpp"

namespace hcclsim::cli {
namespace {

struct ConvertOptions {
  std::string file;
  std::string output = "-";
};

/// Text becomes binary, binary becomes text.
void convert(const ConvertOptions& options) {
  const hccl::ScheduleFile file = hccl::read_schedule(options.file);
  const bool was_text = file.form == hccl::ScheduleForm::text;
  write_output(options.output,
               contents_of(file.schedule, was_text ? hccl::ScheduleForm::binary : hccl::ScheduleForm::text));
}

}  // namespace

void add_schedule_command(CLI::App& app) {
  CLI::App* const schedule = app.add_subcommand("schedule", "Schedules of collectives as files");
  schedule->require_subcommand(1);
  schedule->footer(
      "Examples:\n"
      "  hcclsim schedule generate --algorithm ring --bytes 4M -o ring.txt\n"
      "  hcclsim schedule check ring.txt\n"
      "  hcclsim schedule time ring.txt --platform atlas800-9000");
  add_schedule_generate(*schedule);
  add_schedule_show(*schedule);
  add_schedule_check(*schedule);
  add_schedule_time(*schedule);
  add_schedule_diff(*schedule);
  add_schedule_run(*schedule);

  CLI::App* const convert_command = schedule->add_subcommand("convert", "Turn a text schedule into binary, or back");
  const auto converted = std::make_shared<ConvertOptions>();
  convert_command->add_option("FILE", converted->file, "A schedule in either form")->required();
  convert_command->add_option("-o,--output", converted->output, "File to write, - for standard output")
      ->capture_default_str();
  convert_command->footer(
      "Examples:\n"
      "  hcclsim schedule convert ring.txt -o ring.bin\n"
      "  hcclsim schedule convert ring.bin");
  convert_command->callback([converted] { convert(*converted); });
}

}  // namespace hcclsim::cli
