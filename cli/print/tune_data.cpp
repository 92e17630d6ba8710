#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/json.hpp"
#include "cli/print/profile_report.hpp"
#include "cli/print/tune_report.hpp"

// The form of tune_report.hpp for programs. Keys are stable: docs/formats.md.
namespace hcclsim::cli {
namespace {

Json cuts_json(const study::Cuts& cuts) { return cuts.empty() ? Json(nullptr) : Json(cuts); }

Json premises_json(const TuneReport& report) {
  Json premises{"fixed ready times", "contiguous cuts", "one stream", "costs not below the lower hull of sampled ones"};
  if (report.start_skew > 0) premises.push_back("one start date");
  if (report.op_mode) premises.push_back("launched in time");
  return premises;
}

Json best_json(const TuneReport& report) {
  const study::Tuning& tuning = report.tuning;
  Json chain = Json::array();
  for (const study::SegmentTime& segment : tuning.chain) {
    chain.push_back({{"first", segment.first},
                     {"last", segment.last},
                     {"start_s", segment.start},
                     {"end_s", segment.end},
                     {"waits_for", segment.waits_for_gradient ? "gradient" : "stream"}});
  }
  return {{"by_idx", tuning.best.cuts},
          {"by_size", report.percentages.empty() ? Json(nullptr) : Json(report.percentages)},
          {"all_reduce_fusion_config", report.mindspore},
          {"all_reduce_fusion_config_exact", report.mindspore_exact},
          {"segments", tuning.best.cuts.size()},
          {"finish_s", tuning.best.finish},
          {"exposed_s", tuning.best.finish - report.backward_end},
          {"bound_s", report.certificate.bound.finish},
          {"gap", report.gap()},
          {"simulated_gap", report.simulated_gap()},
          {"witness", report.certificate.bound.gradient},
          {"critical_chain", chain},
          {"premises", premises_json(report)},
          {"brute_force_finish_s", tuning.verified.has_value() ? Json(tuning.verified->finish) : Json(nullptr)},
          {"simulated_finish_s", report.best.finish},
          {"simulated_step_s", report.best.step}};
}

Json strategies_json(const TuneReport& report) {
  Json strategies = Json::array();
  for (std::size_t i = 0; i < report.tuning.strategies.size(); ++i) {
    const study::NamedSplit& split = report.tuning.strategies[i];
    const std::optional<study::ConfirmedSplit>& confirmed = report.strategies[i];
    strategies.push_back({{"name", split.name},
                          {"by_idx", cuts_json(split.cuts)},
                          {"finish_s", split.finish},
                          {"exposed_s", split.finish - report.backward_end},
                          {"simulated_finish_s", confirmed.has_value() ? Json(confirmed->finish) : Json(nullptr)},
                          {"simulated_step_s", confirmed.has_value() ? Json(confirmed->step) : Json(nullptr)}});
  }
  return strategies;
}

Json by_segments_json(const TuneReport& report) {
  Json by_segments = Json::array();
  for (std::size_t k = 0; k < report.by_segments.size(); ++k) {
    const study::Split& split = report.tuning.by_segments[k];
    by_segments.push_back({{"k", k + 1},
                           {"by_idx", split.cuts},
                           {"finish_s", split.finish},
                           {"simulated_finish_s", report.by_segments[k].finish},
                           {"simulated_step_s", report.by_segments[k].step}});
  }
  return by_segments;
}

Json regret_json(const study::Regret& regret) {
  return {{"best_by_idx", regret.best.cuts},
          {"best_finish_s", regret.best.finish},
          {"finish_s", regret.finish},
          {"regret_s", regret.time()}};
}

Json jitter_json(const study::JitterResult& jitter) {
  const study::JitterOutcome& outcome = jitter.outcome;
  return {{"jitter", jitter.jitter},
          {"seed", jitter.seed},
          {"draws", outcome.draws},
          {"optimal", outcome.optimal},
          {"mean_regret_s", outcome.mean_regret},
          {"worst_regret_s", outcome.worst_regret},
          {"worst_regret_fraction", outcome.worst_fraction}};
}

Json bandwidth_json(const study::BandwidthResult& bandwidth) {
  Json intervals = Json::array();
  for (const study::BandwidthInterval& interval : bandwidth.intervals) {
    intervals.push_back({{"from", interval.from}, {"to", interval.to}, {"by_idx", interval.cuts}});
  }
  return {{"links", bandwidth.kind.has_value() ? name_of(*bandwidth.kind) : "all"},
          {"simulated_factors", bandwidth.simulated},
          {"intervals", intervals},
          {"at_lowest", regret_json(bandwidth.at_lowest)},
          {"at_highest", regret_json(bandwidth.at_highest)}};
}

Json shorter_step_json(const TuneReport& report) {
  const auto shorter = report.shorter_step(report.most_segments);
  if (!shorter.has_value()) return nullptr;
  return {{"name", shorter->name}, {"by_idx", shorter->cuts}, {"simulated_step_s", shorter->times.step}};
}

Json earlier_end_json(const TuneReport& report) {
  const auto earlier = report.earlier_end();
  if (!earlier.has_value()) return nullptr;
  return {{"name", earlier->name}, {"by_idx", earlier->cuts}, {"simulated_finish_s", earlier->times.finish}};
}

void add_streams(const study::Tuning& tuning, Json& json) {
  if (tuning.two_links.has_value()) {
    json["two_links"] = {{"by_idx", tuning.two_links->cuts},
                         {"streams", tuning.two_links->streams},
                         {"finish_s", tuning.two_links->finish},
                         {"bound_s", tuning.two_links->bound},
                         {"exact", tuning.two_links->exact}};
  }
  if (tuning.shared_link.has_value()) {
    json["shared_link"] = {{"bound_s", tuning.shared_link->bound},
                           {"by_idx", tuning.shared_link->best_found.cuts},
                           {"best_found_s", tuning.shared_link->best_found.finish},
                           {"exact", tuning.shared_link->exact}};
  }
}

}  // namespace

std::string tune_json(const TuneReport& report) {
  Json json{{"format_version", 1},
            {"model", report.model},
            {"platform", report.platform},
            {"npus", report.npus},
            {"gradients", report.gradients},
            {"bytes", report.bytes},
            {"hcom_parallel", report.hcom_parallel},
            {"backward_end_s", report.backward_end},
            {"cost",
             {{"model", name_of(report.cost_model)},
              {"alpha_s", report.fit.cost.alpha},
              {"beta_s_per_byte", report.fit.cost.beta},
              {"largest_error", report.fit.largest_error},
              {"bound_sizes", report.certificate.sizes}}},
            {"best", best_json(report)},
            {"strategies", strategies_json(report)},
            {"by_segments", by_segments_json(report)},
            {"earlier_end", earlier_end_json(report)},
            {"shorter_step", shorter_step_json(report)}};
  add_streams(report.tuning, json);
  if (report.jitter.has_value()) json["jitter"] = jitter_json(*report.jitter);
  if (report.bandwidth.has_value()) json["bandwidth_range"] = bandwidth_json(*report.bandwidth);
  json["sensitivity"] = Json::array();
  for (const study::Sensitivity& sensitivity : report.sensitivity) {
    Json entry = regret_json(sensitivity.regret);
    entry["in_proportion_to"] = sensitivity.quantity == "FLOPs" ? "flops" : sensitivity.quantity;
    json["sensitivity"].push_back(std::move(entry));
  }
  if (report.profile.has_value()) json["profile"] = profile_json(*report.profile);
  if (!report.unmodelled.empty()) json["not_modelled"] = report.unmodelled;
  json["notes"] = report.notes;
  return json.dump(2) + '\n';
}

}  // namespace hcclsim::cli
