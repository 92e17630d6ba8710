#include "cli/schedule.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/option_checks.hpp"
#include "cli/output.hpp"
#include "cli/schedule_diff.hpp"
#include "cli/schedule_generate.hpp"
#include "cli/schedule_run.hpp"
#include "cli/schedule_show.hpp"
#include "cli/schedule_time.hpp"
#include "hccl/check/check.hpp"
#include "hccl/schedule/file/schedule_file.hpp"

namespace hcclsim::cli {
namespace {

using nlohmann::ordered_json;

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

ordered_json json_of(const hccl::Finding& finding) {
  ordered_json tasks = ordered_json::array();
  for (const hccl::TaskId& task : finding.tasks) {
    tasks.push_back({{"rank", task.rank}, {"queue", task.queue}, {"number", task.number}});
  }
  ordered_json bytes = ordered_json::array();
  for (const hccl::RankBytes& place : finding.bytes) {
    bytes.push_back({{"rank", place.rank},
                     {"buffer", hccl::name_of(place.range.buffer)},
                     {"offset", place.range.offset},
                     {"length", place.range.length}});
  }
  return {{"kind", finding.kind},
          {"message", finding.message},
          {"ranks", finding.ranks},
          {"tasks", std::move(tasks)},
          {"bytes", std::move(bytes)}};
}

std::string check_json(const hccl::CheckReport& report) {
  ordered_json levels = ordered_json::array();
  for (const hccl::LevelReport& level : report.levels) {
    ordered_json findings = ordered_json::array();
    for (const hccl::Finding& finding : level.findings) findings.push_back(json_of(finding));
    levels.push_back(
        {{"level", level.level}, {"ok", level.ok}, {"count", level.count}, {"findings", std::move(findings)}});
  }
  const ordered_json json{
      {"format_version", 1}, {"ok", report.ok}, {"verdict", report.verdict}, {"levels", std::move(levels)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';  // names need not be UTF-8
}

std::string check_text(const hccl::CheckReport& report) {
  std::string text;
  for (const hccl::LevelReport& level : report.levels) {
    text +=
        fmt::format("{}  {}\n", level.level,
                    level.ok ? "ok" : fmt::format("refused, {} finding{}", level.count, level.count == 1 ? "" : "s"));
    for (const hccl::Finding& finding : level.findings) {
      text += fmt::format("    {}: {}\n", finding.kind, finding.message);
    }
  }
  return text + report.verdict + '\n';
}

struct CheckCommand {
  std::string file;
  std::string format = "text";
};

void check(const CheckCommand& options) {
  const hccl::CheckReport report = hccl::check(hccl::read_schedule(options.file).schedule);
  print(options.format == "json" ? check_json(report) : check_text(report));
  if (!report.ok) throw Error(ErrorCode::check_failed, "schedule", options.file + " is refused");
}

}  // namespace

void add_schedule_command(CLI::App& app) {
  CLI::App* const schedule = app.add_subcommand("schedule", "Schedules of collectives as files");
  schedule->require_subcommand(1);
  add_schedule_generate(*schedule);
  add_schedule_show(*schedule);
  add_schedule_time(*schedule);
  add_schedule_diff(*schedule);
  add_schedule_run(*schedule);

  CLI::App* const convert_command = schedule->add_subcommand("convert", "Turn a text schedule into binary, or back");
  const auto converted = std::make_shared<ConvertOptions>();
  convert_command->add_option("FILE", converted->file, "A schedule in either form")->required();
  convert_command->add_option("-o,--output", converted->output, "File to write, - for standard output")
      ->capture_default_str();
  convert_command->callback([converted] { convert(*converted); });

  CLI::App* const check_command =
      schedule->add_subcommand("check", "Prove a schedule, or say what is wrong: docs/checker.md");
  const auto checked = std::make_shared<CheckCommand>();
  check_command->add_option("FILE", checked->file, "A schedule in either form")->required();
  check_command->add_option("--format", checked->format, "text or json")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  check_command->callback([checked] { check(*checked); });
}

}  // namespace hcclsim::cli
