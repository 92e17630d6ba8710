#include "cli/tune_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/output.hpp"

namespace hcclsim::cli {
namespace {

using nlohmann::ordered_json;

std::string milliseconds(Seconds time) { return fmt::format("{:.3f}", time * 1e3); }

std::string list(const std::vector<std::uint32_t>& numbers) {
  constexpr std::size_t most = 12;
  if (numbers.size() <= most) return fmt::format("{}", fmt::join(numbers, ","));
  return fmt::format("{},…,{}", fmt::join(numbers.begin(), numbers.begin() + most - 2, ","), numbers.back());
}

double gap_of(const study::Tuning& tuning) {
  return tuning.bound.finish > 0 ? tuning.best.finish / tuning.bound.finish - 1 : 0;
}

std::string cost_text(const TuneReport& report) {
  const study::AffineCost& cost = report.fit.cost;
  const std::string speed = cost.beta > 0 ? fmt::format(" + n / {:.3f} GB/s", 1 / cost.beta / giga) : "";
  std::string text = fmt::format(
      "Cost of an allreduce of n bytes: {:.2f} us{}, fitted to {} simulated sizes, largest error "
      "{:.1f} %\n",
      cost.alpha / microsecond, speed, report.cost_points, report.fit.largest_error * 100);
  if (report.cost_model == study::CostModel::table)
    text += "Ends below are those of the simulated sizes, straight between them\n";
  if (report.cost_model == study::CostModel::simulated)
    text += "Ends below are those of each segment simulated by itself\n";
  return text;
}

std::string certificate(const TuneReport& report) {
  const study::Tuning& tuning = report.tuning;
  std::string text = fmt::format(
      "The last allreduce ends at {} ms, {} ms behind the backward pass. No schedule ends before {} ms (gradients from "
      "{} "
      "on, ready at the earliest then, need the link): gap {:.2f} %.\n",
      milliseconds(tuning.best.finish), milliseconds(tuning.best.finish - report.backward_end),
      milliseconds(tuning.bound.finish), tuning.bound.gradient, gap_of(tuning) * 100);
  const study::SegmentTime& first = tuning.chain.front();
  text += fmt::format("Critical: segment [{},{}] begins at {} ms, when {}; {} follow{} it without a gap.\n",
                      first.first, first.last, milliseconds(first.start),
                      first.waits_for_gradient ? fmt::format("gradient {} is ready", first.last) : "the stream is free",
                      tuning.chain.size() == 1 ? "nothing" : fmt::format("{} more", tuning.chain.size() - 1),
                      tuning.chain.size() <= 2 ? "s" : "");
  text +=
      "Premises: ready times do not depend on the split; segments are runs of gradients in production order; one "
      "stream.\n";
  if (tuning.verified.has_value()) {
    const bool agrees = tuning.verified->finish >= tuning.best.finish * (1 - 1e-12);
    text +=
        fmt::format("All splits tried: {}.\n", agrees ? "none ends earlier" : "ONE ENDS EARLIER, please report this");
  }
  return text;
}

std::string comparison(const TuneReport& report) {
  Table table({{"split", Table::Align::left},
               {"segments"},
               {"ends ms"},
               {"exposed ms"},
               {"simulated ends ms"},
               {"step ms"},
               {"last indices", Table::Align::left}});
  const auto add = [&](const std::string& name, const study::Cuts& cuts, Seconds finish,
                       const std::optional<ConfirmedSplit>& confirmed) {
    table.add_row({name, cuts.empty() ? "-" : std::to_string(cuts.size()), milliseconds(finish),
                   milliseconds(finish - report.backward_end),
                   confirmed.has_value() ? milliseconds(confirmed->finish) : "-",
                   confirmed.has_value() ? milliseconds(confirmed->step) : "-", list(cuts)});
  };
  for (std::size_t i = 0; i < report.tuning.strategies.size(); ++i) {
    const study::NamedSplit& split = report.tuning.strategies[i];
    add(split.name, split.cuts, split.finish, report.strategies[i]);
  }
  for (std::size_t k = 0; k < report.tuning.by_segments.size(); ++k) {
    const study::Split& split = report.tuning.by_segments[k];
    add(fmt::format("best of {}", k + 1), split.cuts, split.finish, report.by_segments[k]);
  }
  add("no schedule before", {}, report.tuning.bound.finish, {});
  return table.to_string();
}

/// The shortest step of all that were simulated: what the update of the parameters adds is not part of the problem.
std::string shortest_step(const TuneReport& report) {
  const std::string* name = nullptr;
  Seconds least = 0;
  Seconds of_best = 0;
  for (std::size_t i = 0; i < report.tuning.strategies.size(); ++i) {
    if (!report.strategies[i].has_value()) continue;
    const Seconds step = report.strategies[i]->step;
    of_best = step;  // the best split stands last
    if (name != nullptr && step >= least) continue;
    name = &report.tuning.strategies[i].name;
    least = step;
  }
  if (name == nullptr || least >= of_best) return {};
  return fmt::format(
      "The optimum is that of communication. Counting the updates, which each follow their allreduce, the shortest "
      "step of "
      "these is that of '{}': {} ms, {:.2f} % less.\n",
      *name, milliseconds(least), (1 - least / of_best) * 100);
}

std::string two_streams(const study::Tuning& tuning) {
  if (tuning.two_links.has_value()) {
    return fmt::format("Two streams on links of their own: {} ms, last indices {}, streams {} (exact)\n",
                       milliseconds(tuning.two_links->finish), list(tuning.two_links->cuts),
                       fmt::join(tuning.two_links->streams, ","));
  }
  if (tuning.shared_link.has_value()) {
    const study::Bracket& bracket = *tuning.shared_link;
    return fmt::format("Two streams on one link: between {} ms (bound) and {} ms (best {}), last indices {}\n",
                       milliseconds(bracket.bound), milliseconds(bracket.best_found.finish),
                       bracket.exact ? "of all splits" : "found", list(bracket.best_found.cuts));
  }
  return {};
}

std::string timeline_text(const study::Tuning& tuning) {
  Table table(
      {{"segment", Table::Align::left}, {"bytes"}, {"starts ms"}, {"ends ms"}, {"waits for", Table::Align::left}});
  for (const study::SegmentTime& segment : tuning.timeline) {
    table.add_row({fmt::format("[{},{}]", segment.first, segment.last), with_thousands(segment.bytes),
                   milliseconds(segment.start), milliseconds(segment.end),
                   segment.waits_for_gradient ? fmt::format("gradient {}", segment.last) : "the stream"});
  }
  return table.to_string();
}

ordered_json json_of(const std::optional<ConfirmedSplit>& confirmed, Seconds ConfirmedSplit::*figure) {
  return confirmed.has_value() ? ordered_json((*confirmed).*figure) : ordered_json(nullptr);
}

}  // namespace

std::string tune_text(const TuneReport& report) {
  std::string text = report.profile.has_value() ? profile_text(*report.profile) : "";
  text += fmt::format("{}: {} gradients, {} bytes; {} x {}, {}\n", report.model, report.gradients,
                      with_thousands(report.bytes), report.npus, report.npu, report.platform);
  text += cost_text(report) + '\n';
  text += fmt::format("  set_split_strategy_by_idx([{}])\n", fmt::join(report.tuning.best.cuts, ","));
  if (!report.percentages.empty()) {
    text += fmt::format("  set_split_strategy_by_size([{:g}])\n", fmt::join(report.percentages, ","));
  }
  text += fmt::format("  all_reduce_fusion_config=[{}]{}\n\n", fmt::join(report.mindspore, ","),
                      report.mindspore_exact ? "" : "  # nearest: some segments are no runs in parameter order");
  text += certificate(report) + two_streams(report.tuning) + '\n' + comparison(report) + shortest_step(report);
  if (report.explain) text += '\n' + timeline_text(report.tuning);
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string tune_json(const TuneReport& report) {
  const study::Tuning& tuning = report.tuning;
  ordered_json best{{"by_idx", tuning.best.cuts},
                    {"by_size", report.percentages.empty() ? ordered_json(nullptr) : ordered_json(report.percentages)},
                    {"all_reduce_fusion_config", report.mindspore},
                    {"segments", tuning.best.cuts.size()},
                    {"finish_s", tuning.best.finish},
                    {"exposed_s", tuning.best.finish - report.backward_end},
                    {"bound_s", tuning.bound.finish},
                    {"gap", gap_of(tuning)},
                    {"witness", tuning.bound.gradient}};
  ordered_json strategies = ordered_json::array();
  for (std::size_t i = 0; i < tuning.strategies.size(); ++i) {
    const study::NamedSplit& split = tuning.strategies[i];
    strategies.push_back({{"name", split.name},
                          {"by_idx", split.cuts.empty() ? ordered_json(nullptr) : ordered_json(split.cuts)},
                          {"finish_s", split.finish},
                          {"exposed_s", split.finish - report.backward_end},
                          {"simulated_finish_s", json_of(report.strategies[i], &ConfirmedSplit::finish)},
                          {"simulated_step_s", json_of(report.strategies[i], &ConfirmedSplit::step)}});
  }
  ordered_json by_segments = ordered_json::array();
  for (std::size_t k = 0; k < tuning.by_segments.size(); ++k) {
    const study::Split& split = tuning.by_segments[k];
    by_segments.push_back({{"k", k + 1},
                           {"by_idx", split.cuts},
                           {"finish_s", split.finish},
                           {"simulated_finish_s", json_of(report.by_segments[k], &ConfirmedSplit::finish)},
                           {"simulated_step_s", json_of(report.by_segments[k], &ConfirmedSplit::step)}});
  }
  ordered_json json{{"format_version", 1},
                    {"model", report.model},
                    {"platform", report.platform},
                    {"npus", report.npus},
                    {"gradients", report.gradients},
                    {"bytes", report.bytes},
                    {"backward_end_s", report.backward_end},
                    {"cost",
                     {{"model", name_of(report.cost_model)},
                      {"alpha_s", report.fit.cost.alpha},
                      {"beta_s_per_byte", report.fit.cost.beta},
                      {"largest_error", report.fit.largest_error}}},
                    {"best", std::move(best)},
                    {"strategies", std::move(strategies)},
                    {"by_segments", std::move(by_segments)}};
  if (tuning.two_links.has_value()) {
    json["two_links"] = {{"by_idx", tuning.two_links->cuts},
                         {"streams", tuning.two_links->streams},
                         {"finish_s", tuning.two_links->finish}};
  }
  if (tuning.shared_link.has_value()) {
    json["shared_link"] = {{"bound_s", tuning.shared_link->bound},
                           {"by_idx", tuning.shared_link->best_found.cuts},
                           {"best_found_s", tuning.shared_link->best_found.finish},
                           {"exact", tuning.shared_link->exact}};
  }
  if (report.profile.has_value()) json["profile"] = profile_json(*report.profile);
  json["notes"] = report.notes;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace hcclsim::cli
