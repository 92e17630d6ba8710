#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/json.hpp"
#include "cli/print/profile_report.hpp"
#include "cli/print/tune/tune_report.hpp"
#include "cli/terminal/output.hpp"

// The form of tune_report.hpp for programs. Keys are stable: docs/formats.md.
namespace hcclsim::cli {
namespace {

/// Null for a date that is not known.
Json date_json(Seconds date) { return date < study::never ? Json(date) : Json(nullptr); }

Json premises_json(const TuneReport& report) {
  Json premises{"fixed ready times", "contiguous cuts", "one stream", "costs not below the lower hull of sampled ones"};
  if (report.objective == study::Objective::step) {
    premises.push_back(report.update_stream ? "updates in a stream of their own"
                                            : "a rest of the same length after the last allreduce");
  }
  if (report.start_skew > 0) premises.push_back("one start date");
  if (report.op_mode) premises.push_back("launched in time");
  return premises;
}

Json segments_json(const std::vector<study::SegmentTime>& timeline) {
  Json segments = Json::array();
  for (const study::SegmentTime& segment : timeline) {
    segments.push_back({{"first", segment.first},
                        {"last", segment.last},
                        {"bytes", segment.bytes},
                        {"start_s", segment.start},
                        {"end_s", segment.end},
                        {"followed_until_s", segment.followed},
                        {"waits_for", segment.waits_for_gradient ? "gradient" : "stream"}});
  }
  return segments;
}

Json times_json(const TuneReport& report, const study::Split& split,
                const std::optional<study::ConfirmedSplit>& simulated) {
  return {{"by_idx", split.cuts.empty() ? Json(nullptr) : Json(split.cuts)},
          {"finish_s", split.finish},
          {"exposed_s", split.finish - report.backward_end},
          {"step_s", date_json(split.step)},
          {"simulated_finish_s", simulated.has_value() ? Json(simulated->finish) : Json(nullptr)},
          {"simulated_step_s", simulated.has_value() ? Json(simulated->step) : Json(nullptr)}};
}

Json best_json(const TuneReport& report) {
  const study::Tuning& tuning = report.tuning;
  Json best = times_json(report, report.chosen, report.best);
  const bool bound_holds = report.certificate.holds();
  best.update(
      {{"numbering", report.by_parameter ? "reverse parameter order" : "production order"},
       {"by_size", report.by_parameter || report.percentages.empty() ? Json(nullptr) : Json(report.percentages)},
       {"all_reduce_fusion_config", report.mindspore},
       {"all_reduce_fusion_config_exact", report.mindspore_exact},
       {"segments", report.chosen.cuts.size()},
       {"bound_s", bound_holds ? Json(report.certificate.bound.time) : Json(nullptr)},
       {"gap", bound_holds ? Json(report.gap()) : Json(nullptr)},
       {"simulated_gap", bound_holds ? Json(report.simulated_gap()) : Json(nullptr)},
       {"witness", bound_holds ? Json(report.certificate.bound.gradient) : Json(nullptr)},
       {"critical_chain", segments_json(report.chain.segments)},
       {"followers_s", report.chain.followers},
       {"timeline", segments_json(report.timeline)},
       {"premises", premises_json(report)},
       {"brute_force_s", tuning.verified.has_value() ? Json(tuning.verified->time(report.objective)) : Json(nullptr)}});
  return best;
}

Json best_by_cost_json(const TuneReport& report) {
  Json by_cost = times_json(report, report.tuning.best, report.best_by_cost);
  by_cost["preferred"] = report.preferred.has_value() ? Json(*report.preferred) : Json(nullptr);
  return by_cost;
}

Json strategies_json(const TuneReport& report) {
  Json strategies = Json::array();
  for (std::size_t i = 0; i < report.tuning.strategies.size(); ++i) {
    Json strategy = times_json(report, report.tuning.strategies[i].split, report.strategies[i]);
    strategy["name"] = report.tuning.strategies[i].name;
    strategies.push_back(std::move(strategy));
  }
  return strategies;
}

Json by_segments_json(const TuneReport& report) {
  Json by_segments = Json::array();
  for (std::size_t k = 0; k < report.by_segments.size(); ++k) {
    Json entry = times_json(report, report.tuning.by_segments[k], report.by_segments[k]);
    entry["k"] = k + 1;
    by_segments.push_back(std::move(entry));
  }
  return by_segments;
}

Json regret_json(const study::Regret& regret) {
  return {{"best_by_idx", regret.best},
          {"best_end_s", regret.best_end},
          {"end_s", regret.end},
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

Json link_speeds_json(const TuneReport& report) {
  Json all = Json::array();
  for (const study::LinkSpeedsOfSplit& speeds : report.link_speeds) {
    Json best = Json::array();
    for (const auto& [from, to] : speeds.best) best.push_back({{"from_Bps", from}, {"to_Bps", to}});
    all.push_back({{"links", name_of(speeds.kind)},
                   {"used_Bps", speeds.used},
                   {"tried_from_Bps", speeds.from},
                   {"tried_to_Bps", speeds.to},
                   {"best", best},
                   {"least_lost_at_Bps", speeds.least_lost_at},
                   {"least_lost_s", speeds.lost}});
  }
  return {{"given", Json(report.given)}, {"kinds", all}};
}

}  // namespace

std::string tune_json(const TuneReport& report) {
  Json json{{"format_version", 2},
            {"model", report.model},
            {"platform", report.platform},
            {"npus", report.npus},
            {"hbm_contention", on_off(report.hbm_contention)},
            {"gradients", report.gradients},
            {"bytes", report.bytes},
            {"hcom_parallel", report.hcom_parallel},
            {"backward_end_s", report.backward_end},
            {"objective", name_of(report.objective)},
            {"cost",
             {{"model", name_of(report.cost_model)},
              {"alpha_s", report.fit.cost.alpha},
              {"beta_s_per_byte", report.fit.cost.beta},
              {"largest_error", report.fit.largest_error},
              {"simulated_sizes", report.cost_points},
              {"bound_sizes", report.certificate.sizes}}},
            {"best", best_json(report)},
            {"strategies", strategies_json(report)},
            {"by_segments", by_segments_json(report)},
            {"best_by_cost", best_by_cost_json(report)}};
  if (report.cost_model == study::CostModel::aoe) {
    json["cost"]["estimate"] = {{"alpha_s", report.estimate.alpha}, {"beta_s_per_byte", report.estimate.beta}};
  }
  add_streams(report.tuning, json);
  if (report.jitter.has_value()) json["jitter"] = jitter_json(*report.jitter);
  if (report.bandwidth.has_value()) json["bandwidth_range"] = bandwidth_json(*report.bandwidth);
  if (!report.link_speeds.empty()) json["link_speeds"] = link_speeds_json(report);
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
