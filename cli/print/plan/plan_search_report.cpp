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
  return number_of(point, "npus") / number_of(point, "model-parallel") / number_of(point, "stages");
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

/// How whole gradients are reduced, as far as it is told.
std::string reductions_of(const study::Point& point) {
  std::string text =
      point.inputs.contains("hcom-parallel") ? "--hcom-parallel " + input_of(point, "hcom-parallel", "") : "";
  for (const char* const option : {"split", "split-by-idx", "split-by-size", "fusion", "fusion-index"}) {
    if (!point.inputs.contains(option)) continue;
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", option, input_of(point, option, ""));
  }
  return text;
}

std::string gibibytes(Bytes bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / 0x1p30); }

std::uint64_t count_of(const study::PlanSearchResult& result, study::PlanVerdict verdict) {
  const auto found = result.rejected.find(std::string(name_of(verdict)));
  return found == result.rejected.end() ? 0 : found->second;
}

Table front_table(const study::PlanSearchResult& result, std::size_t shown) {
  Table table(
      "step ms|HBM GiB|data|model|stages|chunks|micro-batches|<recompute|<shared by replicas|<shared by model ranks|"
      "<reductions");
  for (std::size_t row = 0; row < std::min(shown, result.front.size()); ++row) {
    const study::JudgedPlan& plan = result.plans[result.front[row]];
    const study::Point& point = plan.point;
    table.add_row(
        {milliseconds(plan.step), gibibytes(plan.estimate.hbm_peak), fmt::to_string(data_of(point)),
         input_of(point, "model-parallel", "1"), input_of(point, "stages", "1"), input_of(point, "chunks", "1"),
         fmt::format("{} x {}", micro_batches_of(point), input_of(point, "micro-batch-size", "1")),
         recomputed_of(point), input_of(point, "optimizer-parallel", "off"), shared_of(point), reductions_of(point)});
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

Json plan_json(const study::JudgedPlan& plan) {
  const study::Point& point = plan.point;
  return {{"command", study::command_line(point.command, point.inputs)},
          {"step_time_s", plan.step},
          {"bound_s", plan.estimate.bound},
          {"hbm_peak_bytes", plan.estimate.hbm_peak},
          {"data", data_of(point)},
          {"model", number_of(point, "model-parallel")},
          {"stages", number_of(point, "stages")},
          {"chunks", number_of(point, "chunks")},
          {"micro_batches", micro_batches_of(point)},
          {"micro_batch_size", number_of(point, "micro-batch-size")},
          {"recompute", input_of(point, "recompute", "none")},
          {"optimizer_parallel", input_of(point, "optimizer-parallel", "off")},
          {"sequence_parallel", point.inputs.contains("sequence-parallel")},
          {"vocabulary_parallel", point.inputs.contains("vocabulary-parallel")},
          {"mp_comm_recompute", input_of(point, "mp-comm-recompute", "on") != "off"},
          {"reductions", reductions_of(point)}};
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
  text += front_table(result, shown).to_string("  ");
  if (result.front.size() > shown) text += fmt::format("  and {} more: --shown\n", result.front.size() - shown);
  const study::JudgedPlan& fastest = result.plans[result.front.front()];
  text += fmt::format("\nThe fastest: {}\n", study::command_line(fastest.point.command, fastest.point.inputs));
  return text;
}

std::string plan_search_json(const PlanSearchReport& report) {
  const study::PlanSearchResult& result = report.result;
  Json front = Json::array();
  for (const std::size_t number : result.front) front.push_back(plan_json(result.plans[number]));
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
      "verdict,best,step_time_s,bound_s,hbm_peak_bytes,data,model,stages,chunks,micro_batches,micro_batch_size,"
      "recompute,optimizer_parallel,sequence_parallel,vocabulary_parallel,mp_comm_recompute,reductions,reason\n";
  for (const study::JudgedPlan& plan : report.result.plans) {
    const study::Point& point = plan.point;
    const bool estimated = plan.estimate.hbm_peak > 0;
    const auto figure = [](bool known, double value) { return known ? fmt::format("{}", value) : std::string(); };
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", name_of(plan.verdict), plan.best ? 1 : 0,
        figure(plan.verdict == study::PlanVerdict::simulated, plan.step), figure(estimated, plan.estimate.bound),
        estimated ? fmt::to_string(plan.estimate.hbm_peak) : std::string(), data_of(point),
        number_of(point, "model-parallel"), number_of(point, "stages"), number_of(point, "chunks"),
        micro_batches_of(point), number_of(point, "micro-batch-size"), input_of(point, "recompute", "none"),
        input_of(point, "optimizer-parallel", "off"), point.inputs.contains("sequence-parallel") ? 1 : 0,
        point.inputs.contains("vocabulary-parallel") ? 1 : 0,
        input_of(point, "mp-comm-recompute", "on") == "off" ? 0 : 1, csv_field(reductions_of(point)),
        csv_field(plan.reason));
  }
  return text;
}

}  // namespace hcclsim::cli
