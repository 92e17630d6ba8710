#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/print/faults.hpp"
#include "cli/print/folded.hpp"
#include "cli/print/link_report.hpp"
#include "cli/print/schedule/schedule_report.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

Json json_of(const study::TimedSchedule& row) {
  Json json{{"file", row.file},
            {"collective", name_of(row.collective)},
            {"algorithm", row.algorithm},
            {"ranks", row.ranks},
            {"bytes", row.payload},
            {"dtype", name_of(row.type)},
            {"time_s", row.alone.time},
            {"device_time_s", row.alone.device},
            {"algbw_Bps", row.speed.algbw},
            {"busbw_Bps", row.speed.busbw},
            {"limited_by", row.alone.limit},
            {"transfers", row.alone.transfers},
            {"simulated_iterations", row.alone.simulated}};
  if (!row.alone.folded.empty()) json["folded"] = folded_json(row.alone.folded);
  if (row.links.has_value()) add_links_json(json, *row.links);
  if (!row.npus.empty()) json["on_npus"] = row.npus;
  if (row.together.has_value()) {
    json["together"] = {{"time_s", row.together->time},
                        {"device_time_s", row.together->device},
                        {"slow_down", row.slow_down()},
                        {"limited_by", row.together->limit}};
  }
  return json;
}

/// The links of each schedule alone or, if they were simulated together, of all of them.
std::string links_csv(const study::ScheduleTimes& times) {
  std::string text = "file," + link_csv_titles();
  const auto add = [&text](std::string_view file, const study::LinkReport& report) {
    text += link_csv_rows(report, csv_field(file) + ',');
  };
  for (const study::TimedSchedule& row : times.schedules) add(row.file, *row.links);
  if (times.links.has_value()) add("all together", *times.links);
  return text;
}

}  // namespace

std::string times_text(const study::ScheduleTimes& times, const study::TimeSpec& spec) {
  std::string text = fmt::format("{}: {} x {}; launch: {}; network: {}\n", times.on.platform, times.on.npus,
                                 times.on.npu, name_of(spec.launch), name_of(times.network));
  if (spec.iterations > 1 || spec.warmups > 0) {
    text += fmt::format("Mean of {} iteration{} after {} to warm up\n", spec.iterations,
                        spec.iterations == 1 ? "" : "s", spec.warmups);
  }
  const bool together = times.schedules.front().together.has_value();
  const std::string alone = "<schedule|<algorithm|ranks|bytes|time us|algbw GB/s|busbw GB/s|<limited by";
  Table table(alone + (together ? "|together us|slow-down|<limited then by" : ""));
  for (const study::TimedSchedule& row : times.schedules) {
    std::vector<std::string> cells{row.file,
                                   row.algorithm,
                                   std::to_string(row.ranks),
                                   with_thousands(row.payload),
                                   microseconds(row.alone.time, 3),
                                   fmt::format("{:.3f}", row.speed.algbw / giga),
                                   fmt::format("{:.3f}", row.speed.busbw / giga),
                                   row.alone.limit};
    if (together) {
      cells.insert(cells.end(),
                   {microseconds(row.together->time, 3), fmt::format("{:.3f}", row.slow_down()), row.together->limit});
    }
    table.add_row(std::move(cells));
  }
  text += table.to_string();
  for (const study::TimedSchedule& row : times.schedules) {
    if (row.alone.simulated > 1 || spec.iterations + spec.warmups == 1) continue;
    text += fmt::format("{}: one iteration was simulated; it ends on all ranks at once, so that all are equal.\n",
                        row.file);
  }
  for (const study::TimedSchedule& row : times.schedules) {
    if (row.alone.folded.empty()) continue;
    text += fmt::format("{}: {}.\n", row.file, hccl::folded_text(row.alone.folded, row.ranks));
  }
  if (together) text += fmt::format("All together end after {} us.\n", microseconds(times.makespan, 3));
  for (const study::TimedSchedule& row : times.schedules) {
    if (row.links.has_value()) text += link_report_text(*row.links, fmt::format("{} alone: busiest links", row.file));
  }
  if (times.links.has_value()) text += link_report_text(*times.links, "All together: busiest links");
  return text + remarks_text(times.on.unmodelled, times.on.notes);
}

std::string times_json(const study::ScheduleTimes& times, const study::TimeSpec& spec) {
  Json json{{"format_version", 2},     {"platform", times.on.platform},  {"npu", times.on.npu},
            {"npus", times.on.npus},   {"launch", name_of(spec.launch)}, {"network", name_of(times.network)},
            {"warmups", spec.warmups}, {"iterations", spec.iterations},  {"schedules", Json::array()}};
  if (!times.on.rank_table.empty()) json["rank_table"] = times.on.rank_table;
  for (const study::TimedSchedule& row : times.schedules) json["schedules"].push_back(json_of(row));
  if (times.schedules.front().together.has_value()) json["makespan_s"] = times.makespan;
  if (times.links.has_value()) add_links_json(json, *times.links);
  if (!times.on.unmodelled.empty()) json["not_modelled"] = times.on.unmodelled;
  if (!spec.faults.empty()) json["faults"] = faults_json(spec.faults);
  json["notes"] = times.on.notes;
  return json.dump(2) + '\n';
}

std::string times_csv(const study::ScheduleTimes& times) {
  if (times.schedules.front().links.has_value()) return links_csv(times);
  const bool together = times.schedules.front().together.has_value();
  std::string text = "file,algorithm,ranks,bytes,dtype,time_us,algbw_GBps,busbw_GBps,limited_by";
  text += together ? ",together_us,slow_down,together_limited_by\n" : "\n";
  for (const study::TimedSchedule& row : times.schedules) {
    text += fmt::format("{},{},{},{},{},{},{:.6f},{:.6f},{}", csv_field(row.file), csv_field(row.algorithm), row.ranks,
                        row.payload, name_of(row.type), microseconds(row.alone.time, 3), row.speed.algbw / giga,
                        row.speed.busbw / giga, csv_field(row.alone.limit));
    if (together) {
      text += fmt::format(",{},{:.6f},{}", microseconds(row.together->time, 3), row.slow_down(),
                          csv_field(row.together->limit));
    }
    text += '\n';
  }
  return text;
}

}  // namespace hcclsim::cli
