#include "cli/commands/commands.hpp"

#include <memory>
#include <string>

#include "cli/options/parse/common.hpp"
#include "cli/print/output.hpp"
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

void add_schedule_command(Command& app) {
  app.add_command("schedule", "Schedules of collectives as files", [](Command& schedule) {
    schedule.require_command();
    schedule.footer(
        "Examples:\n"
        "  hcclsim schedule generate --algorithm ring --bytes 4M -o ring.txt\n"
        "  hcclsim schedule check ring.txt\n"
        "  hcclsim schedule time ring.txt --platform atlas800-9000");
    add_schedule_generate(schedule);
    add_schedule_show(schedule);
    add_schedule_check(schedule);
    add_schedule_time(schedule);
    add_schedule_diff(schedule);
    add_schedule_run(schedule);

    Command& converting = schedule.add_command("convert", "Turn a text schedule into binary, or back");
    const auto converted = std::make_shared<ConvertOptions>();
    converting.add("FILE", read_file(converted->file), "A schedule in either form").value_name("TEXT").required();
    add_output_option(converting, "-o,--output", converted->output).value_name("TEXT");
    converting.footer(
        "Examples:\n"
        "  hcclsim schedule convert ring.txt -o ring.bin\n"
        "  hcclsim schedule convert ring.bin");
    converting.on_run([converted] { convert(*converted); });
  });
}

}  // namespace hcclsim::cli
