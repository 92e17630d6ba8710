#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/json.hpp"
#include "cli/print/baseline.hpp"
#include "cli/print/explanation.hpp"
#include "cli/print/folded.hpp"
#include "cli/print/link_report.hpp"
#include "cli/print/plan/comm_reuse_report.hpp"
#include "cli/print/profile_report.hpp"
#include "cli/print/run/goodput_report.hpp"
#include "cli/print/run/host_report.hpp"
#include "cli/print/run/mapping.hpp"
#include "cli/print/run/numerics_report.hpp"
#include "cli/print/run/parallel_report.hpp"
#include "cli/print/run/routing.hpp"
#include "cli/print/run/run_report.hpp"
#include "cli/print/run/uncertainty.hpp"
#include "cli/terminal/output.hpp"

// The forms of run_report.hpp for programs. Their keys are stable: docs/formats.md.
namespace hcclsim::cli {
namespace {

constexpr int format_version = 2;

Json segments_json(const RunReport& report) {
  Json segments = Json::array();
  for (const hccl::SegmentFigures& segment : report.view.segments) {
    Json parameters = Json::array();
    for (const hccl::ParameterRange& range : report.parameters_of(segment.segment)) {
      parameters.push_back({range.first, range.last});
    }
    segments.push_back({{"first", segment.segment.first},
                        {"last", segment.segment.last},
                        {"tensors", segment.segment.tensors()},
                        {"bytes", segment.bytes},
                        {"share", segment.share},
                        {"ready_s", segment.ready},
                        {"start_s", segment.start},
                        {"end_s", segment.end},
                        {"algorithm", segment.algorithm},
                        {"algbw_Bps", segment.algbw},
                        {"busbw_Bps", segment.busbw},
                        {"hidden", segment.hidden},
                        {"limited_by", report.bottleneck_of(segment)},
                        {"parameters", parameters}});
  }
  return segments;
}

/// The line that HCCL logs of its segments.
std::string segment_log(const RunReport& report) {
  std::vector<hccl::Segment> segments;
  for (const hccl::SegmentFigures& segment : report.view.segments) segments.push_back(segment.segment);
  return hccl::segment_log_line(segments);
}

Json trace_json(const RunReport& report) {
  Json allreduce = Json::array();
  for (const hccl::SegmentFigures& segment : report.view.segments) {
    allreduce.push_back({{"start_s", segment.start}, {"end_s", segment.end}});
  }
  return {{"fp_start_s", 0.0},
          {"fp_end_s", report.view.fp_end},
          {"bp_start_s", report.view.bp_start},
          {"bp_end_s", report.view.bp_end},
          {"allreduce", allreduce},
          {"iteration_end_s", report.view.iteration_end}};
}

Json gradients_json(const RunReport& report) {
  Json gradients = Json::array();
  for (std::size_t i = 0; i < report.program->gradients.size(); ++i) {
    const models::Gradient& gradient = report.program->gradients[i];
    gradients.push_back({{"index", i},
                         {"name", gradient.name},
                         {"bytes", gradient.elements * size_of(gradient.dtype)},
                         {"ready_s", report.view.gradient_ready[i]}});
  }
  return gradients;
}

Json checks_json(const RunReport& report) {
  const hccl::GradientCheckTimes& checks = *report.view.checks;
  Json json{{"start_s", checks.start}, {"kernels_end_s", checks.kernels_end}, {"end_s", checks.end}};
  json["overflow_flag"] = nullptr;
  if (!checks.algorithm.empty()) {
    json["overflow_flag"] = {
        {"algorithm", checks.algorithm}, {"start_s", checks.flag.start}, {"end_s", checks.flag.end}};
  }
  return json;
}

/// The figures of a rank: its step, and its phases if they are known.
std::vector<std::pair<const char*, Seconds>> figures_of_rank(const RunReport& report, std::size_t rank) {
  std::vector<std::pair<const char*, Seconds>> figures{{"step_time_s", report.step.step_times[rank]}};
  if (report.phases.empty()) return figures;
  const study::RankPhases& phases = report.phases[rank];
  figures.insert(figures.end(), {{"bp_end_s", phases.bp_end},
                                 {"communication_start_s", phases.communication_start},
                                 {"communication_end_s", phases.communication_end},
                                 {"exposed_communication_s", phases.exposed}});
  return figures;
}

/// Ranks that follow each other and have the same figures, but for rounding, are one entry with those of the first.
Json ranks_json(const RunReport& report) {
  Json ranks = Json::array();
  std::vector<std::pair<const char*, Seconds>> entry;
  for (std::size_t rank = 0; rank < report.step.step_times.size(); ++rank) {
    const auto figures = figures_of_rank(report, rank);
    const Seconds rounding = 1e-12 * figures.front().second;
    const auto alike = [&](const auto& a, const auto& b) { return std::abs(a.second - b.second) <= rounding; };
    if (std::equal(figures.begin(), figures.end(), entry.begin(), entry.end(), alike)) {
      ranks.back()["last"] = rank;
      continue;
    }
    ranks.push_back({{"first", rank}, {"last", rank}});
    for (const auto& [name, seconds] : figures) ranks.back()[name] = seconds;
    entry = figures;
  }
  return ranks;
}

/// Null unless further simulations were run.
Json settings_json(const RunReport& report) {
  Json settings = Json::object();
  for (const auto& [name, value] : report.settings) settings[name] = value;
  return settings;
}

Json compression_json(const study::CompressionResult& result) {
  const hccl::HookMemory& memory = result.memory;
  const auto compared = [&](Seconds time) { return result.compared ? Json(time) : Json(nullptr); };
  return {{"settings", result.text},
          {"start", result.settings.start},
          {"elements_before", result.elements_before},
          {"elements_after", result.elements_after},
          {"bytes_before", result.bytes_before},
          {"bytes_after", result.bytes_after},
          {"rate", result.rate()},
          {"plain_step_s", compared(result.plain_step)},
          {"compressed_step_s", compared(result.compressed_step)},
          {"saved_s", compared(result.saved())},
          {"plain_iterations", result.plain_iterations},
          {"compressed_iterations", result.compressed_iterations},
          {"compression_stats",
           {{"rate", result.stats_after() > 0 ? result.rate() : 0.0},
            {"before", result.stats_before()},
            {"after", result.stats_after()}}},
          {"hbm_bytes",
           {{"errors", memory.errors},
            {"copies", memory.copies},
            {"factors", memory.factors},
            {"buffers", memory.buffers},
            {"all", memory.total()}}}};
}

/// Lists the rules of fusion that were simulated; stages and shared parameters leave no split to choose.
Json advice_on_fusion(const RunReport& report) {
  Json trials = Json::array();
  for (const study::FusionTrial& trial : report.fusions->trials) {
    trials.push_back(
        {{"fusion", option_text(trial.rules)}, {"collectives", trial.collectives}, {"step_time_s", trial.step}});
  }
  return {{"try_best", study::is_worthwhile(report.fusions->trials.front().step, report.step_time())},
          {"fusions", trials},
          {"other_hcom_parallel", report.hcom_parallel ? "off" : "on"},
          {"other_hcom_parallel_step_s", report.other_hcom_parallel_step.value()}};
}

Json advice_json(const RunReport& report) {
  if (report.fusions.has_value()) return advice_on_fusion(report);
  if (!report.advice.has_value()) return nullptr;
  Json trials = Json::array();
  for (const study::Trial& trial : report.trials) {
    trials.push_back({{"split_by_size", trial.by_size.empty() ? Json(nullptr) : Json(trial.by_size)},
                      {"split_by_idx", trial.by_idx},
                      {"fusion_index", trial.fusion_index.empty() ? Json(nullptr) : Json(trial.fusion_index)},
                      {"step_time_s", trial.step_time}});
  }
  const auto seconds = [](const std::optional<Seconds>& time) {
    return time.has_value() ? Json(*time) : Json(nullptr);
  };
  return {{"scenario", static_cast<int>(report.advice->scenario)},
          {"sentence", report.advice->sentence},
          {"try_best", report.advice->try_best},
          {"trials", trials},
          {"one_npu_step_s", seconds(report.one_npu_step)},
          {"other_hcom_parallel", report.hcom_parallel ? "off" : "on"},
          {"other_hcom_parallel_step_s", seconds(report.other_hcom_parallel_step)}};
}

}  // namespace

std::string gradients_csv(const RunReport& report) {
  const bool staged = report.gradient_dates.size() > 1;
  std::string text = staged ? "stage,name,bytes,ready_s\n" : "name,bytes,ready_s\n";
  for (std::size_t stage = 0; stage < report.gradient_dates.size(); ++stage) {
    const study::GradientDates& dates = report.gradient_dates[stage];
    // Where operators or parameters are shared, gradients come in another order than they are numbered.
    std::vector<std::size_t> order(dates.ready.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return dates.ready[i]; });
    for (const std::size_t i : order) {
      const models::Gradient& gradient = dates.program->gradients[i];
      if (staged) text += fmt::format("{},", stage);
      text += fmt::format("{},{},{}\n", csv_field(gradient.name), gradient.elements * size_of(gradient.dtype),
                          dates.ready[i]);
    }
  }
  return text;
}

std::string json_report(const RunReport& report) {
  const hccl::StepView& view = report.view;
  const std::optional<Seconds>& data_aug_bound = view.iterations.back().data_aug_bound;
  Json json{{"format_version", format_version},
            {"model", report.model},
            {"platform", report.platform},
            {"npus", report.npus},
            {"batch", report.program->batch},
            {"rank", report.rank},
            {"iterations", view.iterations.size()},
            {"amp", report.amp},
            {"framework", report.framework},
            {"hcom_parallel", report.hcom_parallel},
            {"launch", report.launch},
            {"network", report.network},
            {"hbm_contention", report.shared_hbm > 0 ? "on" : "off"},
            {"settings", settings_json(report)},
            {"segment_log", segment_log(report)},
            {"segments", segments_json(report)},
            {"trace", trace_json(report)},
            {"gradients", gradients_json(report)},
            {"step_time_s", report.step_time()},
            {"ranks", ranks_json(report)},
            {"images_per_s", report.images_per_second()},
            {"compute_s", view.computing},
            {"exposed_communication_s", view.exposed},
            {"free_s", view.free()},
            {"data_aug_bound_s", data_aug_bound.has_value() ? Json(*data_aug_bound) : Json(nullptr)},
            {"forward_s", view.phases.forward},
            {"backward_s", view.phases.backward},
            {"hbm_peak_bytes", report.fullest().hbm.peak()},
            {"hbm_peak_rank", report.fullest().rank},
            {"uncertainty", report.uncertainty.has_value() ? uncertainty_json(*report.uncertainty) : Json(nullptr)},
            {"advice", advice_json(report)},
            {"notes", report.notes}};
  if (!report.mapping.empty()) json["mapping"] = mapping_json(report.mapping);
  if (!report.step.folded.empty()) json["folded"] = folded_json(report.step.folded);
  if (report.faults.has_value()) {
    json["faults"] = {
        {"given", report.faults->texts},
        {"steps_s", report.faults->steps},
        {"step_time_without_s", report.faults->without.has_value() ? Json(*report.faults->without) : Json(nullptr)}};
  }
  if (report.routing.has_value()) json["routing"] = routing_json(*report.routing);
  add_host_json(json, report);
  if (report.lists_links && report.links.has_value()) add_links_json(json, *report.links);
  if (report.comm_reuse.has_value()) json["comm_reuse"] = comm_reuse_json(*report.comm_reuse);
  if (report.goodput.has_value()) json["goodput"] = goodput_json(*report.goodput);
  if (report.compression.has_value()) json["compression"] = compression_json(*report.compression);
  if (report.start_up.has_value()) {
    json["start_up"] = {{"broadcast_bytes", report.start_up->broadcast},
                        {"copied_bytes", report.start_up->copied},
                        {"time_s", report.start_up->time}};
  }
  if (const auto spread = report.spread(); spread.has_value()) {
    json["step_spread"] = {{"steps", spread->steps},
                           {"least_s", spread->least},
                           {"p50_s", spread->p50},
                           {"p99_s", spread->p99},
                           {"most_s", spread->most}};
  }
  if (report.parallel.has_value()) add_parallel_json(json, report);
  if (report.throughput.has_value()) json["throughput"] = throughput_json(*report.throughput);
  if (report.profile.has_value()) json["profile"] = profile_json(*report.profile);
  if (!report.unmodelled.empty()) json["not_modelled"] = report.unmodelled;
  if (!report.rank_table.empty()) json["rank_table"] = report.rank_table;
  if (view.checks.has_value()) {
    json["loss_scale"] = report.loss_scale;
    json["clip_norm"] = report.clip_norm.has_value() ? Json(*report.clip_norm) : Json(nullptr);
    json["gradient_checks"] = checks_json(report);
  }
  if (!report.explanation.empty()) json["explain"] = explanation_json(report.explanation);
  if (report.numerics.has_value()) json["numerics"] = numerics_json(*report.numerics);
  if (report.baseline.has_value()) json["baseline"] = baseline_json(*report.baseline);
  // Names and paths are the user's and need not be UTF-8; replacing what is not keeps the output valid JSON.
  return json.dump(2) + '\n';
}

std::string csv_report(const RunReport& report) {
  if (report.numerics.has_value()) return numerics_csv(*report.numerics);
  if (report.lists_links && report.links.has_value()) return link_csv_titles() + link_csv_rows(*report.links);
  std::string text =
      "segment,first,last,tensors,bytes,share,ready_s,start_s,end_s,hidden,algbw_Bps,busbw_Bps,algorithm,limited_by,"
      "parameters\n";
  for (std::size_t i = 0; i < report.view.segments.size(); ++i) {
    const hccl::SegmentFigures& segment = report.view.segments[i];
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", i + 1,
                   segment.segment.first, segment.segment.last, segment.segment.tensors(), segment.bytes, segment.share,
                   segment.ready, segment.start, segment.end, segment.hidden, segment.algbw, segment.busbw,
                   csv_field(segment.algorithm), csv_field(report.bottleneck_of(segment)),
                   csv_field(to_string(report.parameters_of(segment.segment))));
  }
  return text;
}

}  // namespace hcclsim::cli
