#include "cli/schedule_time.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "cli/hccl_options.hpp"
#include "cli/option_checks.hpp"
#include "cli/output.hpp"
#include "cli/platform_path.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/runtime/bandwidth.hpp"
#include "hccl/runtime/limit.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::cli {
namespace {

using nlohmann::ordered_json;

struct TimeCommand {
  std::vector<std::string> files;
  std::string platform = "atlas800-9000";
  std::string format = "text";
  std::string network = "auto";
  std::string launch = "graph";
  std::uint32_t iterations = 1;
  std::uint32_t warmups = 0;
  bool together = false;
  HcclOptions hccl_options;
  std::vector<hccl::HcclSetting> hccl_settings{};  // of environment and options
};

/// What one simulation says of one schedule.
struct Timing {
  Seconds time = 0;  ///< per iteration, launch included
  Seconds device = 0;
  std::uint64_t transfers = 0;
  std::uint32_t simulated = 0;
  std::string limit;
};

struct Row {
  const hccl::CollectiveCall& call;
  Timing alone;
  std::optional<Timing> together;
};

/// Everything that is printed.
struct Report {
  std::string platform;
  std::string npu;
  Rank npus = 0;
  std::string network;
  std::vector<Row> rows;
  Seconds makespan = 0;                 ///< of all together
  std::vector<std::string> unmodelled;  ///< settings of HCCL without effect
  std::vector<std::string> notes;
};

Timing timing_of(const hccl::SimulatedCollectives& result, std::size_t call, const sim::Cluster& cluster,
                 Seconds others, Seconds launch) {
  const hccl::CollectiveTime& time = result.calls[call];
  return {.time = time.per_iteration,
          .device = time.duration,
          .transfers = time.stats.transfers,
          .simulated = result.simulated,
          .limit = limit_of(time, cluster, launch, others).name};
}

Report simulate(const TimeCommand& command, const std::string& platform,
                const std::vector<hccl::CollectiveCall>& calls) {
  sim::Cluster cluster(platform);
  Report report;
  std::vector<std::string> of_kernels;  // nothing that matters here
  const device::Soc soc = device::resolve_soc(cluster, 0, of_kernels);
  const device::TaskCosts costs = device::read_task_costs(cluster, report.notes);
  const bool together = command.together && calls.size() > 1;
  const hccl::HcclConfig config = read_hccl_config(command.hccl_settings, soc.generation, report.notes);
  // The schedules are made; what is left is how long their ranks wait for each other.
  constexpr std::array<std::string_view, 1> modelled{"HCCL_EXEC_TIMEOUT"};
  report.unmodelled = unmodelled(command.hccl_settings, modelled);

  hccl::SimulateOptions options{.network = hccl::automatic_network(calls),
                                .launch = hccl::parse_launch_mode(command.launch),
                                .iterations = command.iterations,
                                .warmups = command.warmups,
                                .exec_timeout = config.exec_timeout};
  if (command.network != "auto") {
    options.network = command.network == "simgrid" ? sim::NetworkKind::simgrid : sim::NetworkKind::fluid;
  }
  const Seconds launch = launch_of(costs, options.launch);
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const hccl::CollectiveCall& call : calls) points.push_back({call});
  if (together) points.push_back(calls);
  const std::vector<hccl::SimulatedCollectives> results = simulate_each(cluster, soc, costs, options, points);

  report.platform = std::filesystem::path(platform).filename().string();
  report.npu = soc.name;
  report.npus = cluster.size();
  report.network = name_of(options.network);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Row row{calls[i], timing_of(results[i], 0, cluster, 0, launch), {}};
    if (together) {
      const Seconds others = results.back().calls[i].duration - row.alone.device;
      row.together = timing_of(results.back(), i, cluster, others, launch);
    }
    report.rows.push_back(std::move(row));
  }
  if (together) report.makespan = results.back().makespan;
  return report;
}

double slow_down(const Row& row) { return row.alone.time > 0 ? row.together->time / row.alone.time : 1; }

std::string microseconds(Seconds time) { return fmt::format("{:.3f}", time / microsecond); }

std::string text_of(const Report& report, const TimeCommand& command) {
  std::string text = fmt::format("{}: {} x {}; launch: {}; network: {}\n", report.platform, report.npus, report.npu,
                                 command.launch, report.network);
  if (command.iterations > 1 || command.warmups > 0) {
    text += fmt::format("Mean of {} iteration{} after {} to warm up\n", command.iterations,
                        command.iterations == 1 ? "" : "s", command.warmups);
  }
  const bool together = report.rows.front().together.has_value();
  std::vector<Table::Column> columns{{"schedule", Table::Align::left},
                                     {"algorithm", Table::Align::left},
                                     {"ranks"},
                                     {"bytes"},
                                     {"time us"},
                                     {"algbw GB/s"},
                                     {"busbw GB/s"},
                                     {"limited by", Table::Align::left}};
  if (together) {
    columns.insert(columns.end(), {{"together us"}, {"slow-down"}, {"limited then by", Table::Align::left}});
  }
  Table table(columns);
  for (const Row& row : report.rows) {
    const hccl::Schedule& schedule = *row.call.schedule;
    const hccl::Bandwidth speed = bandwidth_of(schedule, row.alone.time);
    std::vector<std::string> cells{row.call.name,
                                   schedule.algorithm,
                                   std::to_string(schedule.ranks),
                                   with_thousands(schedule.payload()),
                                   microseconds(row.alone.time),
                                   fmt::format("{:.3f}", speed.algbw / giga),
                                   fmt::format("{:.3f}", speed.busbw / giga),
                                   row.alone.limit};
    if (together) {
      cells.insert(cells.end(),
                   {microseconds(row.together->time), fmt::format("{:.3f}", slow_down(row)), row.together->limit});
    }
    table.add_row(std::move(cells));
  }
  text += table.to_string();
  for (const Row& row : report.rows) {
    if (row.alone.simulated > 1 || command.iterations + command.warmups == 1) continue;
    text += fmt::format("{}: one iteration was simulated; it ends on all ranks at once, so that all are equal.\n",
                        row.call.name);
  }
  if (together) text += fmt::format("All together end after {} us.\n", microseconds(report.makespan));
  text += unmodelled_line(report.unmodelled);
  for (const std::string& note : report.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

ordered_json json_of(const Row& row) {
  const hccl::Schedule& schedule = *row.call.schedule;
  const hccl::Bandwidth speed = bandwidth_of(schedule, row.alone.time);
  ordered_json json{{"file", row.call.name},
                    {"collective", name_of(schedule.collective)},
                    {"algorithm", schedule.algorithm},
                    {"ranks", schedule.ranks},
                    {"bytes", schedule.payload()},
                    {"dtype", name_of(schedule.type)},
                    {"time_s", row.alone.time},
                    {"device_time_s", row.alone.device},
                    {"algbw_Bps", speed.algbw},
                    {"busbw_Bps", speed.busbw},
                    {"limited_by", row.alone.limit},
                    {"transfers", row.alone.transfers},
                    {"simulated_iterations", row.alone.simulated}};
  if (row.together.has_value()) {
    json["together"] = {{"time_s", row.together->time},
                        {"device_time_s", row.together->device},
                        {"slow_down", slow_down(row)},
                        {"limited_by", row.together->limit}};
  }
  return json;
}

std::string json_of(const Report& report, const TimeCommand& command) {
  ordered_json json{
      {"format_version", 1},        {"platform", report.platform},      {"npu", report.npu},
      {"npus", report.npus},        {"launch", command.launch},         {"network", report.network},
      {"warmups", command.warmups}, {"iterations", command.iterations}, {"schedules", ordered_json::array()}};
  for (const Row& row : report.rows) json["schedules"].push_back(json_of(row));
  if (report.rows.front().together.has_value()) json["makespan_s"] = report.makespan;
  if (!report.unmodelled.empty()) json["not_modelled"] = report.unmodelled;
  json["notes"] = report.notes;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';  // names need not be UTF-8
}

std::string csv_of(const Report& report) {
  const bool together = report.rows.front().together.has_value();
  std::string text = "file,algorithm,ranks,bytes,dtype,time_us,algbw_GBps,busbw_GBps,limited_by";
  text += together ? ",together_us,slow_down,together_limited_by\n" : "\n";
  for (const Row& row : report.rows) {
    const hccl::Schedule& schedule = *row.call.schedule;
    const hccl::Bandwidth speed = bandwidth_of(schedule, row.alone.time);
    text += fmt::format("{},{},{},{},{},{},{:.6f},{:.6f},{}", csv_field(row.call.name), csv_field(schedule.algorithm),
                        schedule.ranks, schedule.payload(), name_of(schedule.type), microseconds(row.alone.time),
                        speed.algbw / giga, speed.busbw / giga, csv_field(row.alone.limit));
    if (together) {
      text += fmt::format(",{},{:.6f},{}", microseconds(row.together->time), slow_down(row),
                          csv_field(row.together->limit));
    }
    text += '\n';
  }
  return text;
}

void time_schedules(const TimeCommand& command) {
  const std::string platform = find_platform(command.platform);
  std::vector<hccl::CollectiveCall> calls;
  for (const std::string& file : command.files) {
    auto schedule = std::make_shared<const hccl::Schedule>(hccl::read_schedule(file).schedule);
    calls.push_back(
        {.name = file, .schedule = std::move(schedule), .stream = static_cast<std::uint32_t>(calls.size())});
  }
  print(run_in_child([&] {
    const Report report = simulate(command, platform, calls);
    if (command.format == "json") return json_of(report, command);
    return command.format == "csv" ? csv_of(report) : text_of(report, command);
  }));
}

}  // namespace

void add_schedule_time(CLI::App& schedule) {
  CLI::App* const command = schedule.add_subcommand("time", "Simulate schedules on a platform");
  const auto options = std::make_shared<TimeCommand>();
  constexpr std::uint64_t most_iterations = 1'000'000;
  command->add_option("FILE", options->files, "Schedules in either form")->required();
  command->add_option("--platform", options->platform, "A platform file, or the name of a shipped one")
      ->capture_default_str();
  command->add_flag("--together", options->together, "Also all at the same time, sharing the links");
  command->add_option("--iterations", options->iterations, "How often, back to back")
      ->check(whole_number(1, most_iterations))
      ->capture_default_str();
  command->add_option("--warmups", options->warmups, "Iterations before them that do not count")
      ->check(whole_number(0, most_iterations))
      ->capture_default_str();
  command->add_option("--launch", options->launch, "graph: tasks are loaded in advance; op: the host launches each")
      ->check(one_of({"graph", "op"}))
      ->capture_default_str();
  command->add_option("--network", options->network, "Network model; auto: simgrid up to 64 NPUs, then fluid")
      ->check(one_of({"auto", "simgrid", "fluid"}))
      ->capture_default_str();
  command->add_option("--format", options->format, "text, json or csv")
      ->check(one_of({"text", "json", "csv"}))
      ->capture_default_str();
  add_hccl_options(*command, options->hccl_options);
  command->footer(
      "Examples:\n"
      "  hcclsim schedule time ring.txt hd.txt --platform atlas800-9000\n"
      "  hcclsim schedule time a.txt b.txt --together --iterations 20 --warmups 10 --launch op");
  command->callback([command, options] {
    options->hccl_settings = hccl_settings(OptionOrigins(*command, {}), options->hccl_options);
    time_schedules(*options);
  });
}

}  // namespace hcclsim::cli
