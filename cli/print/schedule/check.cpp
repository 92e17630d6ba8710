#include <fmt/format.h>

#include <utility>

#include "base/json.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/print/schedule/schedule_report.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

Json json_of(const hccl::Finding& finding) {
  Json tasks = Json::array();
  for (const hccl::TaskId& task : finding.tasks) {
    tasks.push_back({{"rank", task.rank}, {"queue", task.queue}, {"number", task.number}});
  }
  Json bytes = Json::array();
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

Json json_of(const hccl::ReductionOrder& order) {
  return {{"free", order.free},
          {"same_on_all_ranks", order.same_on_all_ranks && !order.free},
          {"reductions", order.additions},
          {"error_bound", order.error_bound},
          {"signature", order.free ? Json(nullptr) : Json(fmt::format("{:016x}", order.signature))}};
}

Json json_of(const hccl::Distances& distances) {
  Json cuts = Json::array();
  for (const hccl::CutDistance& cut : distances.cuts) {
    cuts.push_back({{"level", cut.name},
                    {"groups", cut.groups},
                    {"bytes", cut.crossing},
                    {"least_bytes", cut.least},
                    {"least_time_s", cut.least_time}});
  }
  Json json{{"steps", distances.steps},     {"least_steps", distances.least_steps},
            {"sent", distances.sent},       {"least_sent", distances.least_sent},
            {"reduced", distances.reduced}, {"least_reduced", distances.least_reduced}};
  if (distances.least_time_of.empty()) return json;
  json["cuts"] = std::move(cuts);
  json["least_time_s"] = distances.least_time;
  json["least_time_of"] = distances.least_time_of;
  return json;
}

std::string text_of(const hccl::ReductionOrder& order) {
  if (order.free) return "    free: reductions of integers come out the same in any order\n";
  return fmt::format("    signature {:016x}; at most {} reduction{} in a row, relative error up to {:.3g}\n",
                     order.signature, order.additions, order.additions == 1 ? "" : "s", order.error_bound);
}

std::string text_of(const hccl::Distances& distances) {
  std::string text = fmt::format(
      "    steps {}, at least {} with as many transfers of a rank at once; bytes sent by a rank {}, at least {}; "
      "reduced at one {}, at least {}\n",
      distances.steps, distances.least_steps, with_thousands(distances.sent), with_thousands(distances.least_sent),
      with_thousands(distances.reduced), with_thousands(distances.least_reduced));
  for (const hccl::CutDistance& cut : distances.cuts) {
    text += fmt::format("    between {} {}s: bytes {}, at least {} in {:.3f} us\n", cut.groups, cut.name,
                        with_thousands(cut.crossing), with_thousands(cut.least), cut.least_time / microsecond);
  }
  if (distances.least_time_of.empty()) return text;
  return text + fmt::format("    time on this platform at least {:.3f} us, by the {}\n",
                            distances.least_time / microsecond,
                            distances.least_time_of == "steps" ? "steps, with as many transfers of a rank at once"
                                                               : "bytes between " + distances.least_time_of + "s");
}

Json json_of(const hccl::TimedCheck& timing) {
  return {{"time_s", timing.time},
          {"bound_s", timing.bound},
          {"efficiency", timing.efficiency()},
          {"transfers", timing.transfers},
          {"bytes", timing.conservation.carried},
          {"critical_path",
           {{"alpha_s", timing.path.alpha()},
            {"beta_s", timing.path.beta()},
            {"sharing_s", timing.path.sharing},
            {"gamma_s", timing.path.gamma()}}}};
}

std::string time_text(const hccl::TimedCheck& timing) {
  std::string text = fmt::format("    simulated {:.3f} us; bound over time {:.1f} %\n", timing.time / microsecond,
                                 100 * timing.efficiency());
  return text + fmt::format(
                    "    critical path in us: set-ups, latencies and notifies {:.3f}, bytes {:.3f}, shared links "
                    "{:.3f}, reductions and copies {:.3f}\n",
                    timing.path.alpha() / microsecond, timing.path.beta() / microsecond,
                    timing.path.sharing / microsecond, timing.path.gamma() / microsecond);
}

}  // namespace

std::string more_findings(const hccl::LevelReport& level, std::string_view indent) {
  if (level.count <= level.findings.size()) return "";
  return fmt::format("{}… and {} more of {} findings\n", indent, level.count - level.findings.size(), level.count);
}

std::string check_json(const study::ScheduleCheck& result, const std::string& file) {
  const hccl::CheckReport& report = result.report;
  Json levels = Json::array();
  for (const hccl::LevelReport& level : report.levels) {
    Json findings = Json::array();
    for (const hccl::Finding& finding : level.findings) findings.push_back(json_of(finding));
    levels.push_back(
        {{"level", level.level}, {"ok", level.ok}, {"count", level.count}, {"findings", std::move(findings)}});
  }
  Json json{{"format_version", 2}, {"ok", report.ok}, {"verdict", report.verdict}, {"levels", std::move(levels)}};
  if (!file.empty()) json["file"] = file;
  if (report.order) json["order"] = json_of(*report.order);
  if (report.distances) json["distances"] = json_of(*report.distances);
  if (result.timing) json["timing"] = json_of(*result.timing);
  if (!result.on.unmodelled.empty()) json["not_modelled"] = result.on.unmodelled;
  if (!result.on.notes.empty()) json["notes"] = result.on.notes;
  return json.dump(2) + '\n';
}

std::string unchecked_json(const Error& error, const std::string& file) {
  const Json json{{"format_version", 2},
                  {"ok", false},
                  {"error", {{"kind", error.kind()}, {"message", error.what()}}},
                  {"file", file}};
  return json.dump(2) + '\n';
}

std::string check_text(const study::ScheduleCheck& result) {
  const hccl::CheckReport& report = result.report;
  std::string text;
  for (const hccl::LevelReport& level : report.levels) {
    text +=
        fmt::format("{}  {}\n", level.level,
                    level.ok ? "ok" : fmt::format("refused, {} finding{}", level.count, level.count == 1 ? "" : "s"));
    for (const hccl::Finding& finding : level.findings) {
      text += fmt::format("    {}: {}\n", finding.kind, finding.message);
    }
    text += more_findings(level, "    ");
    if (level.level == "L5" && report.order) text += text_of(*report.order);
    if (level.level == "L7" && report.distances) text += text_of(*report.distances);
    if (level.level == "L8" && result.timing) text += time_text(*result.timing);
    if (level.level == "L9" && result.timing) {
      text += fmt::format("    {} transfers, {} bytes between NPUs\n", with_thousands(result.timing->transfers),
                          with_thousands(result.timing->conservation.carried));
    }
  }
  return text + report.verdict + '\n' + remarks_text(result.on.unmodelled, result.on.notes);
}

}  // namespace hcclsim::cli
