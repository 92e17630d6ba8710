#include "cli/print/plan/plan_search_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "cli/terminal/output.hpp"
#include "study/compare/sweep/point.hpp"

namespace hcclsim::cli {
namespace {

std::string input_of(const study::Point& point, const char* option, const char* otherwise) {
  return point.inputs.value(option, std::string(otherwise)).get<std::string>();
}

std::uint64_t number_of(const study::Point& point, const char* option) {
  return std::stoull(input_of(point, option, "1"));
}

/// Replicas of the network.
std::uint64_t data_of(const study::Point& point) {
  return number_of(point, "npus") / number_of(point, "model-parallel") / number_of(point, "context-parallel") /
         number_of(point, "stages");
}

std::uint64_t micro_batches_of(const study::Point& point) {
  return number_of(point, "global-batch") / data_of(point) / number_of(point, "micro-batch-size");
}

/// What ranks that share operators share besides.
std::string shared_of(const study::Point& point) {
  std::string shared;
  for (const char* const what : {"sequence", "vocabulary"}) {
    if (!point.inputs.contains(fmt::format("{}-parallel", what))) continue;
    shared += fmt::format("{}{}", shared.empty() ? "" : ", ", what);
  }
  return shared;
}

/// What is computed again, and what of that is kept.
std::string recomputed_of(const study::Point& point) {
  const bool keeps = input_of(point, "mp-comm-recompute", "on") == "off";
  return input_of(point, "recompute", "none") + (keeps ? ", collectives kept" : "");
}

bool is_of_file(const PlanSearchReport& report, const std::string& option, const Json& value) {
  return report.of_file.contains(option) && report.of_file[option] == value;
}

/// The options that say how whole gradients are reduced, without those that a launch file gave.
std::string reductions_of(const PlanSearchReport& report, const study::Point& point) {
  std::string text;
  for (const char* const option :
       {"hcom-parallel", "split", "split-by-idx", "split-by-size", "fusion", "fusion-index"}) {
    if (!point.inputs.contains(option) || is_of_file(report, option, point.inputs[option])) continue;
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", option, input_of(point, option, ""));
  }
  return text;
}

/// The command that runs a plan: of what a file has given, it names the file.
std::string command_of(const PlanSearchReport& report, const study::Point& point) {
  Json inputs = report.launch_file;
  for (const auto& [option, value] : point.inputs.items()) {
    if (!is_of_file(report, option, value)) inputs[option] = value;
  }
  return study::command_line(point.command, inputs);
}

std::string gibibytes(Bytes bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / 0x1p30); }

std::uint64_t count_of(const study::PlanSearchResult& result, study::PlanVerdict verdict) {
  const auto found = result.rejected.find(std::string(name_of(verdict)));
  return found == result.rejected.end() ? 0 : found->second;
}

/// Columns of ranks that share positions, or experts, are there where some plan has such ranks.
Table front_table(const PlanSearchReport& report, std::size_t shown) {
  const study::PlanSearchResult& result = report.result;
  const auto any = [&](const char* option) {
    return std::ranges::any_of(result.front,
                               [&](std::size_t number) { return result.plans[number].point.inputs.contains(option); });
  };
  const bool context = any("context-parallel");
  const bool experts = any("expert-parallel");
  Table table(
      fmt::format("step ms|HBM GiB|data|model{}{}|stages|chunks|micro-batches|<recompute|<shared by replicas|"
                  "<shared by model ranks|<reductions",
                  context ? "|<context" : "", experts ? "|experts" : ""));
  for (std::size_t row = 0; row < std::min(shown, result.front.size()); ++row) {
    const study::JudgedPlan& plan = result.plans[result.front[row]];
    const study::Point& point = plan.point;
    std::vector<std::string> row_texts{milliseconds(plan.step), gibibytes(plan.estimate.hbm_peak),
                                       fmt::to_string(data_of(point)), input_of(point, "model-parallel", "1")};
    if (context) {
      const std::string kind = input_of(point, "context-kind", "");
      row_texts.push_back(input_of(point, "context-parallel", "1") + (kind.empty() ? "" : " " + kind));
    }
    if (experts) row_texts.push_back(input_of(point, "expert-parallel", "1"));
    for (std::string& text : std::vector<std::string>{
             input_of(point, "stages", "1"), input_of(point, "chunks", "1"),
             fmt::format("{} x {}", micro_batches_of(point), input_of(point, "micro-batch-size", "1")),
             recomputed_of(point), input_of(point, "optimizer-parallel", "off"), shared_of(point),
             reductions_of(report, point)}) {
      row_texts.push_back(std::move(text));
    }
    table.add_row(std::move(row_texts));
  }
  return table;
}

/// The most common error of plans that were refused, or failed.
std::string first_reason(const study::PlanSearchResult& result, study::PlanVerdict verdict) {
  const auto found = std::ranges::find(result.plans, verdict, &study::JudgedPlan::verdict);
  return found == result.plans.end() ? std::string() : found->reason;
}

std::string verdict_lines(const PlanSearchReport& report) {
  using enum study::PlanVerdict;
  const study::PlanSearchResult& result = report.result;
  std::string text = fmt::format("  {} simulated\n", result.simulated);
  const auto add = [&](study::PlanVerdict verdict, std::string_view what) {
    if (const std::uint64_t count = count_of(result, verdict); count > 0) text += fmt::format("  {} {}\n", count, what);
  };
  add(memory, "need more HBM than an NPU has");
  add(bound,
      "cannot be among the best: were each rank alone on the links, they would still be slower than one that needs no "
      "more memory");
  add(refused, fmt::format("cannot be, the first because: {}", first_reason(result, refused)));
  add(failed, fmt::format("failed in the simulation, the first because: {}", first_reason(result, failed)));
  add(waiting, "are left: the same command goes on, if it has a --database");
  return text;
}

Json plan_json(const PlanSearchReport& report, const study::JudgedPlan& plan) {
  const study::Point& point = plan.point;
  return {{"command", command_of(report, point)},
          {"step_time_s", plan.step},
          {"bound_s", plan.estimate.bound},
          {"hbm_peak_bytes", plan.estimate.hbm_peak},
          {"data", data_of(point)},
          {"model", number_of(point, "model-parallel")},
          {"context", number_of(point, "context-parallel")},
          {"context_kind", input_of(point, "context-kind", "")},
          {"experts", number_of(point, "expert-parallel")},
          {"stages", number_of(point, "stages")},
          {"chunks", number_of(point, "chunks")},
          {"micro_batches", micro_batches_of(point)},
          {"micro_batch_size", number_of(point, "micro-batch-size")},
          {"recompute", input_of(point, "recompute", "none")},
          {"optimizer_parallel", input_of(point, "optimizer-parallel", "off")},
          {"sequence_parallel", point.inputs.contains("sequence-parallel")},
          {"vocabulary_parallel", point.inputs.contains("vocabulary-parallel")},
          {"mp_comm_recompute", input_of(point, "mp-comm-recompute", "on") != "off"},
          {"reductions", reductions_of(report, point)}};
}

}  // namespace

std::string plan_search_text(const PlanSearchReport& report, std::size_t shown) {
  const study::PlanSearchResult& result = report.result;
  std::string text =
      fmt::format("{} on {} NPU{}, {}: {} samples per step, {} plans\n", report.model, report.space.npus,
                  report.space.npus == 1 ? "" : "s", report.platform, report.space.global_batch, result.plans.size());
  text += verdict_lines(report);
  for (const std::string& note : report.notes) text += fmt::format("Note: {}\n", note);
  if (result.front.empty()) return text + "No plan was simulated to its end.\n";
  text += "\nNo other plan is as fast with as little memory:\n";
  text += front_table(report, shown).to_string("  ");
  if (result.front.size() > shown) text += fmt::format("  and {} more: --shown\n", result.front.size() - shown);
  const study::JudgedPlan& fastest = result.plans[result.front.front()];
  text += fmt::format("\nThe fastest: {}\n", command_of(report, fastest.point));
  if (report.space.said_by.has_value())
    text += fmt::format("As a file of its program: the same command with --emit {}\n", name_of(*report.space.said_by));
  return text;
}

std::string plan_search_json(const PlanSearchReport& report) {
  const study::PlanSearchResult& result = report.result;
  Json front = Json::array();
  for (const std::size_t number : result.front) front.push_back(plan_json(report, result.plans[number]));
  Json rejected = Json::object();
  for (const auto& [verdict, count] : result.rejected) rejected[verdict] = count;
  Json json{{"format_version", 1},
            {"mode", "plan"},
            {"model", report.model},
            {"platform", report.platform},
            {"npus", report.space.npus},
            {"global_batch", report.space.global_batch},
            {"prune", report.by_bound ? "bound" : "memory"},
            {"plans", result.plans.size()},
            {"notes", report.notes},
            {"simulated", result.simulated},
            {"rejected", std::move(rejected)},
            {"pareto", std::move(front)}};
  if (!result.front.empty()) json["step_time_s"] = result.plans[result.front.front()].step;
  return json.dump(2) + "\n";
}

std::string plan_search_csv(const PlanSearchReport& report) {
  std::string text =
      "verdict,best,step_time_s,bound_s,hbm_peak_bytes,data,model,context,context_kind,experts,stages,chunks,"
      "micro_batches,micro_batch_size,recompute,optimizer_parallel,sequence_parallel,vocabulary_parallel,mp_comm_"
      "recompute,reductions,reason\n";
  for (const study::JudgedPlan& plan : report.result.plans) {
    const study::Point& point = plan.point;
    const bool estimated = plan.estimate.hbm_peak > 0;
    const auto figure = [](bool known, double value) { return known ? fmt::format("{}", value) : std::string(); };
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", name_of(plan.verdict), plan.best ? 1 : 0,
        figure(plan.verdict == study::PlanVerdict::simulated, plan.step), figure(estimated, plan.estimate.bound),
        estimated ? fmt::to_string(plan.estimate.hbm_peak) : std::string(), data_of(point),
        number_of(point, "model-parallel"), number_of(point, "context-parallel"), input_of(point, "context-kind", ""),
        number_of(point, "expert-parallel"), number_of(point, "stages"), number_of(point, "chunks"),
        micro_batches_of(point), number_of(point, "micro-batch-size"), input_of(point, "recompute", "none"),
        input_of(point, "optimizer-parallel", "off"), point.inputs.contains("sequence-parallel") ? 1 : 0,
        point.inputs.contains("vocabulary-parallel") ? 1 : 0,
        input_of(point, "mp-comm-recompute", "on") == "off" ? 0 : 1, csv_field(reductions_of(report, point)),
        csv_field(plan.reason));
  }
  return text;
}

}  // namespace hcclsim::cli
