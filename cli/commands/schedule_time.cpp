#include "cli/commands/schedule_time.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/loaded_platform.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/platform_path.hpp"
#include "cli/print/output.hpp"
#include "hccl/runtime/bandwidth.hpp"
#include "hccl/runtime/bottleneck.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "hccl/schedule/file/schedule_file.hpp"

namespace hcclsim::cli {
namespace {

struct TimeCommand : PlatformChoice {
  std::vector<std::string> files;
  std::string format = "text";
  std::string network = "auto";
  std::string launch = "graph";
  std::uint32_t iterations = 1;
  std::uint32_t warmups = 0;
  bool together = false;
};

/// What one simulation says of one schedule.
struct Timing {
  Seconds time = 0;  ///< per iteration, launch included
  Seconds device = 0;
  std::uint64_t transfers = 0;
  std::uint32_t simulated = 0;
  std::uint32_t servers_alike = 1;
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
  std::string rank_table;  ///< its file; empty: none
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
          .servers_alike = result.servers_alike,
          .limit = bottleneck_of(time, cluster, launch, others).name};
}

Report simulate(const TimeCommand& command, const std::string& path, const std::vector<hccl::CollectiveCall>& calls) {
  // The schedules are made; what is left is how their bytes go and how long their ranks wait for each other.
  constexpr std::array<std::string_view, 2> obeyed{"HCCL_EXEC_TIMEOUT", "HCCL_INTER_HCCS_DISABLE"};
  sim::Cluster cluster(path);
  const LoadedPlatform platform(command.rank_table, command.hccl_settings, obeyed, cluster);
  for (const hccl::CollectiveCall& call : calls) platform.require_ranks(call.name, call.schedule->ranks);
  const bool together = command.together && calls.size() > 1;
  hccl::SimulateOptions options{.network = hccl::automatic_network(calls),
                                .launch = hccl::parse_launch_mode(command.launch),
                                .iterations = command.iterations,
                                .warmups = command.warmups,
                                .exec_timeout = platform.config.exec_timeout,
                                .fold = true};
  if (command.network != "auto") {
    options.network = command.network == "simgrid" ? sim::NetworkKind::simgrid : sim::NetworkKind::fluid;
  }
  const Seconds launch = launch_of(platform.costs, options.launch);
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const hccl::CollectiveCall& call : calls) points.push_back({call});
  if (together) points.push_back(calls);
  const std::vector<hccl::SimulatedCollectives> results =
      simulate_each(cluster, platform.soc, platform.costs, options, points);

  Report report;
  report.platform = std::filesystem::path(cluster.path()).filename().string();
  report.rank_table = platform.rank_table;
  report.npu = platform.soc.name;
  report.npus = platform.placed.value_or(cluster.size());
  report.network = name_of(options.network);
  report.unmodelled = platform.unmodelled;
  report.notes = platform.notes;
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
                                   microseconds(row.alone.time, 3),
                                   fmt::format("{:.3f}", speed.algbw / giga),
                                   fmt::format("{:.3f}", speed.busbw / giga),
                                   row.alone.limit};
    if (together) {
      cells.insert(cells.end(),
                   {microseconds(row.together->time, 3), fmt::format("{:.3f}", slow_down(row)), row.together->limit});
    }
    table.add_row(std::move(cells));
  }
  text += table.to_string();
  for (const Row& row : report.rows) {
    if (row.alone.simulated > 1 || command.iterations + command.warmups == 1) continue;
    text += fmt::format("{}: one iteration was simulated; it ends on all ranks at once, so that all are equal.\n",
                        row.call.name);
  }
  for (const Row& row : report.rows) {
    if (row.alone.servers_alike == 1) continue;
    text += fmt::format("{}: one server was simulated; the {} servers are alike in what they do.\n", row.call.name,
                        row.alone.servers_alike);
  }
  if (together) text += fmt::format("All together end after {} us.\n", microseconds(report.makespan, 3));
  text += unmodelled_line(report.unmodelled);
  for (const std::string& note : report.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

Json json_of(const Row& row) {
  const hccl::Schedule& schedule = *row.call.schedule;
  const hccl::Bandwidth speed = bandwidth_of(schedule, row.alone.time);
  Json json{{"file", row.call.name},
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
            {"simulated_iterations", row.alone.simulated},
            {"servers_alike", row.alone.servers_alike}};
  if (row.together.has_value()) {
    json["together"] = {{"time_s", row.together->time},
                        {"device_time_s", row.together->device},
                        {"slow_down", slow_down(row)},
                        {"limited_by", row.together->limit}};
  }
  return json;
}

std::string json_of(const Report& report, const TimeCommand& command) {
  Json json{{"format_version", 1},        {"platform", report.platform},      {"npu", report.npu},
            {"npus", report.npus},        {"launch", command.launch},         {"network", report.network},
            {"warmups", command.warmups}, {"iterations", command.iterations}, {"schedules", Json::array()}};
  if (!report.rank_table.empty()) json["rank_table"] = report.rank_table;
  for (const Row& row : report.rows) json["schedules"].push_back(json_of(row));
  if (report.rows.front().together.has_value()) json["makespan_s"] = report.makespan;
  if (!report.unmodelled.empty()) json["not_modelled"] = report.unmodelled;
  json["notes"] = report.notes;
  return json.dump(2) + '\n';
}

std::string csv_of(const Report& report) {
  const bool together = report.rows.front().together.has_value();
  std::string text = "file,algorithm,ranks,bytes,dtype,time_us,algbw_GBps,busbw_GBps,limited_by";
  text += together ? ",together_us,slow_down,together_limited_by\n" : "\n";
  for (const Row& row : report.rows) {
    const hccl::Schedule& schedule = *row.call.schedule;
    const hccl::Bandwidth speed = bandwidth_of(schedule, row.alone.time);
    text += fmt::format("{},{},{},{},{},{},{:.6f},{:.6f},{}", csv_field(row.call.name), csv_field(schedule.algorithm),
                        schedule.ranks, schedule.payload(), name_of(schedule.type), microseconds(row.alone.time, 3),
                        speed.algbw / giga, speed.busbw / giga, csv_field(row.alone.limit));
    if (together) {
      text += fmt::format(",{},{:.6f},{}", microseconds(row.together->time, 3), slow_down(row),
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
    if (command.format == "text") return text_of(report, command);
    print_remarks_apart(report.unmodelled, report.notes);
    return csv_of(report);
  }));
}

}  // namespace

void add_schedule_time(Command& schedule) {
  Command& command = schedule.add_command("time", "Simulate schedules on a platform");
  const auto options = std::make_shared<TimeCommand>();
  options->platform = "atlas800-9000";
  constexpr std::uint64_t most_iterations = 1'000'000;
  command.add("FILE", read_files(options->files), "Schedules in either form").required();
  add_platform_options(command, "A platform file, or the name of a shipped one", *options);
  command.add("--together", flag(options->together), "Also all at the same time, sharing the links");
  command.add("--iterations", whole_number(options->iterations, 1, most_iterations), "How often, back to back")
      .value_name("UINT")
      .with_default();
  command
      .add("--warmups", whole_number(options->warmups, 0, most_iterations), "Iterations before them that do not count")
      .value_name("UINT")
      .with_default();
  add_launch_option(command, options->launch, "graph: tasks are loaded in advance; op: the host launches each");
  command
      .add("--network", one_of({"auto", "simgrid", "fluid"}, options->network),
           "Network model; auto: simgrid up to 64 NPUs, then fluid")
      .value_name("TEXT")
      .with_default();
  add_format_option(command, options->format, {"text", "json", "csv"});
  command.footer(
      "Examples:\n"
      "  hcclsim schedule time ring.txt hd.txt --platform atlas800-9000\n"
      "  hcclsim schedule time a.txt b.txt --together --iterations 20 --warmups 10 --launch op");
  command.on_run([&command, options] {
    finish_platform_options(OptionOrigins(command, {}), {}, *options);
    time_schedules(*options);
  });
}

}  // namespace hcclsim::cli
