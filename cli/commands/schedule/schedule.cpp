#include "cli/commands/commands.hpp"

#include <memory>
#include <string>

#include "cli/options/parse/common.hpp"
#include "cli/terminal/output.hpp"
#include "hccl/schedule/explicit_form.hpp"
#include "hccl/schedule/file/schedule_file.hpp"

namespace hcclsim::cli {
namespace {

struct ConvertOptions {
  std::string file;
  std::string form;  ///< empty: the other one of text and binary
  bool listed = false;
  std::string output = "-";
};

hccl::ScheduleForm form_of(const ConvertOptions& options, hccl::ScheduleForm of_file) {
  if (options.form == "json") return hccl::ScheduleForm::json;
  if (options.form == "text") return hccl::ScheduleForm::text;
  if (options.form == "binary") return hccl::ScheduleForm::binary;
  const bool to_binary = of_file == hccl::ScheduleForm::text && !options.listed;
  return to_binary ? hccl::ScheduleForm::binary : hccl::ScheduleForm::text;
}

void convert(const ConvertOptions& options) {
  const hccl::ScheduleFile file = hccl::read_schedule(options.file);
  const hccl::ScheduleForm form = form_of(options, file.form);
  write_output(options.output, contents_of(options.listed ? explicit_form(file.schedule) : file.schedule, form));
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

    Command& converting = schedule.add_command("convert", "Turn a text schedule into binary, or back; into lists");
    const auto converted = std::make_shared<ConvertOptions>();
    converting.add("FILE", read_file(converted->file), "A schedule in any form; - is standard input")
        .value_name("TEXT")
        .required();
    converting.add("--explicit", flag(converted->listed),
                   "Every task of every rank by itself, with byte offsets, peers and notifies as numbers");
    converting
        .add("--form", one_of({"text", "binary", "json"}, converted->form),
             "Form of the output; if left out, text of what is not text, and of --explicit, else binary")
        .value_name("TEXT");
    add_output_option(converting, "-o,--output", converted->output).value_name("TEXT");
    converting.footer(
        "Examples:\n"
        "  hcclsim schedule convert ring.txt -o ring.bin\n"
        "  hcclsim schedule convert ring.bin\n"
        "  hcclsim schedule convert ring.txt --explicit -o tasks.txt");
    converting.on_run([converted] { convert(*converted); });
  });
}

}  // namespace hcclsim::cli
