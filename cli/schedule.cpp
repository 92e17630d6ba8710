#include "cli/schedule.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/hccl_options.hpp"
#include "cli/option_checks.hpp"
#include "cli/output.hpp"
#include "cli/platform_path.hpp"
#include "cli/schedule_diff.hpp"
#include "cli/schedule_run.hpp"
#include "cli/schedule_show.hpp"
#include "cli/schedule_time.hpp"
#include "device/soc.hpp"
#include "hccl/check/check.hpp"
#include "hccl/collective/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::cli {
namespace {

using nlohmann::ordered_json;

std::string contents_of(const hccl::Schedule& schedule, hccl::ScheduleForm form) {
  return form == hccl::ScheduleForm::binary ? hccl::binary_of(schedule) : hccl::text_of(schedule);
}

/// To a file whole or not at all, or to standard output.
void write_to(const std::string& output, const std::string& contents) {
  if (output == "-") {
    print(contents);
  } else {
    write_file_atomically(output, contents);
  }
}

struct GenerateOptions {
  std::string algorithm = "auto";
  std::string platform = "atlas800-9000";
  Rank ranks = 0;  // 0: all of the platform
  std::uint64_t elements = 0;
  std::string type = "fp32";
  std::string op = "sum";
  bool binary = false;
  std::string output = "-";
  HcclOptions hccl_options;
  std::vector<hccl::HcclSetting> hccl_settings{};  // of environment and options
};

void generate(const GenerateOptions& options) {
  const std::string path = find_platform(options.platform);
  hccl::AllReduceRequest request{.algorithm = hccl::parse_allreduce_algorithm(options.algorithm),
                                 .elements = options.elements,
                                 .type = parse_data_type(options.type),
                                 .op = parse_reduce_op(options.op)};
  const auto form = options.binary ? hccl::ScheduleForm::binary : hccl::ScheduleForm::text;
  write_to(options.output, run_in_child([&] {
             sim::Cluster cluster(path);
             const Rank ranks = options.ranks == 0 ? cluster.size() : options.ranks;
             if (ranks > cluster.size()) {
               bad_input("option", "--ranks {}: {} has {} NPUs", ranks, path, cluster.size());
             }
             std::vector<std::string> notes;
             const device::Soc soc = device::resolve_soc(cluster, 0, notes);
             request.config = read_hccl_config(options.hccl_settings, soc.generation, notes);
             const hccl::Topology topology = hccl::topology_of(hccl::world_communicator(ranks), cluster);
             return contents_of(*hccl::make_allreduce(request, topology, soc), form);
           }));
}

struct ConvertOptions {
  std::string file;
  std::string output = "-";
};

/// Text becomes binary, binary becomes text.
void convert(const ConvertOptions& options) {
  const hccl::ScheduleFile file = hccl::read_schedule(options.file);
  const bool was_text = file.form == hccl::ScheduleForm::text;
  write_to(options.output,
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

void add_generate(CLI::App& schedule) {
  CLI::App* const command = schedule.add_subcommand("generate", "Write the schedule of an allreduce");
  const auto options = std::make_shared<GenerateOptions>();
  command->add_option("--algorithm", options->algorithm, "As `run --allreduce`")
      ->check(parsed_by(hccl::parse_allreduce_algorithm, "auto, ring, mesh, …"))
      ->capture_default_str();
  command->add_option("--platform", options->platform, "A platform file, or the name of a shipped one")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "The first NPUs of the platform [all]")
      ->check(whole_number(1, 1U << 20U));
  command->add_option("--elements", options->elements, "Payload of each rank")
      ->check(whole_number(0, std::uint64_t{1} << 40U))
      ->required();
  command->add_option("--dtype", options->type, "Type of the elements")
      ->check(parsed_by(parse_data_type, ""))
      ->capture_default_str();
  command->add_option("--op", options->op, "Reduction")->check(parsed_by(parse_reduce_op, ""))->capture_default_str();
  command->add_flag("--binary", options->binary, "The binary form instead of the text form");
  command->add_option("-o,--output", options->output, "File to write, - for standard output")->capture_default_str();
  add_hccl_options(*command, options->hccl_options);
  command->callback([command, options] {
    options->hccl_settings = hccl_settings(OptionOrigins(*command, {}), options->hccl_options);
    generate(*options);
  });
}

}  // namespace

void add_schedule_command(CLI::App& app) {
  CLI::App* const schedule = app.add_subcommand("schedule", "Schedules of collectives as files");
  schedule->require_subcommand(1);
  add_generate(*schedule);
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
