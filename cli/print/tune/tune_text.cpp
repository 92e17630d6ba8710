#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/options/hccl_options.hpp"
#include "cli/print/profile_report.hpp"
#include "cli/print/tune/tune_report.hpp"
#include "cli/terminal/output.hpp"
#include "study/platform/link_sources.hpp"

// The form of tune_report.hpp for people.

namespace hcclsim::cli {
namespace {

using study::Objective;

std::string list(const std::vector<std::uint32_t>& numbers) {
  constexpr std::size_t most = 12;
  if (numbers.size() <= most) return fmt::format("{}", fmt::join(numbers, ","));
  return fmt::format("{},…,{}", fmt::join(numbers.begin(), numbers.begin() + most - 2, ","), numbers.back());
}

std::string line_text(const TuneReport& report) {
  const study::AffineCost& cost = report.fit.cost;
  const std::string speed = cost.beta > 0 ? fmt::format(" + n / {:.3f} GB/s", 1 / cost.beta / giga) : "";
  return fmt::format("{:.2f} us{}", cost.alpha / microsecond, speed);
}

std::string cost_text(const TuneReport& report) {
  const double error = report.fit.largest_error * 100;
  if (report.cost_model == study::CostModel::affine) {
    constexpr double far_off = 2;  // per cent
    return fmt::format(
        "Cost of an allreduce of n bytes: {}, fitted to {} simulated sizes, largest error {:.1f} %\n{}",
        line_text(report), report.line_points, error,
        error > far_off ? "That line is far off: --cost table takes the simulated sizes themselves\n" : "");
  }
  if (report.cost_model == study::CostModel::aoe) {
    return fmt::format(
        "Cost of an allreduce of n bytes: as AOE estimates it for 910A, {:.1f} us + n / {:.2f} GB/s; simulated {}\n",
        report.estimate.alpha / microsecond, 1 / report.estimate.beta / giga, line_text(report));
  }
  const std::string how = report.cost_model == study::CostModel::table
                              ? fmt::format("straight between {} simulated sizes", report.cost_points)
                              : fmt::format("each of {} sizes simulated by itself", report.cost_points);
  return fmt::format("Cost of an allreduce of n bytes: {}; roughly {}, with an error of up to {:.1f} %\n", how,
                     line_text(report), error);
}

/// All their decimals, of which there are at most six, and no powers of ten: they are copied.
std::string percentages_text(const std::vector<double>& percentages) {
  std::vector<std::string> texts;
  for (const double percentage : percentages) {
    std::string& text = texts.emplace_back(fmt::format("{:.6f}", percentage));
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

/// The segments of the critical chain behind its first one, and what follows them.
std::string chain_text(const study::CriticalChain& chain) {
  const study::SegmentTime& first = chain.segments.front();
  const std::size_t more = chain.segments.size() - 1;
  std::string text = fmt::format(
      "Critical: segment [{},{}] begins at {} ms, when {}; ", first.first, first.last, milliseconds(first.start),
      first.waits_for_gradient ? fmt::format("gradient {} is ready", first.last) : "the stream is free");
  if (more == 0) {
    text += "no segment follows it";
  } else if (more == 1) {
    text += "one segment follows it without a gap";
  } else {
    text += fmt::format("{} segments follow it without a gap", more);
  }
  if (chain.followers > 0) {
    text += fmt::format("; then {} ms for what gradients from {} on leave to do", milliseconds(chain.followers),
                        chain.segments.back().first);
  }
  return text + ".\n";
}

/// What cuts cost where they hide nothing, by the simulated split of the most segments.
std::string serial_text(const TuneReport& report) {
  std::string text =
      "hcom_parallel is off: allreduces begin when the backward pass has ended and follow each other, so that no cut "
      "hides anything; ";
  const std::size_t best_segments = report.chosen.cuts.size();
  text += best_segments == 1 ? "one segment is best." : "several segments together cost less than one.";
  std::size_t most = best_segments;
  std::string name;
  Seconds more = 0;
  for (std::size_t i = 0; i < report.strategies.size(); ++i) {
    const study::NamedSplit& strategy = report.tuning.strategies[i];
    if (!report.strategies[i].has_value() || strategy.split.cuts.size() <= most) continue;
    most = strategy.split.cuts.size();
    name = strategy.name;
    more = report.strategies[i]->finish - report.best.finish;
  }
  if (name.empty()) return text + '\n';
  return text + fmt::format(" Simulated, '{}' ends {} ms {}, {:.2f} us for each further segment.\n", name,
                            milliseconds(std::abs(more)), more < 0 ? "earlier" : "later",
                            std::abs(more) / microsecond / static_cast<double>(most - best_segments));
}

std::string premises_text(const TuneReport& report) {
  std::string text =
      "Premises: fixed ready times, the same for every split; contiguous cuts, runs of gradients in production order; "
      "one stream";
  if (report.objective == Objective::step) {
    text += report.update_stream
                ? "; updates or checks in a stream of their own, each when its gradient is reduced, and after them a "
                  "rest of the same length"
                : "; after the last allreduce a rest of the same length";
  }
  text += fmt::format("; for the bound, costs not below the lower hull of those of {} sizes", report.certificate.sizes);
  if (report.cost_model != study::CostModel::simulated) {
    text += fmt::format("; for the optimum, those of the {}", report.cost_model == study::CostModel::affine ? "line"
                                                              : report.cost_model == study::CostModel::aoe  ? "estimate"
                                                                                                            : "table");
  }
  if (report.start_skew > 0) {
    text +=
        fmt::format("; NPUs that start at one date, while simulated ones start within {:g} us and wait for the last",
                    report.start_skew / microsecond);
  }
  if (report.op_mode) text += "; allreduces that their hosts have launched by the time their gradients are ready";
  return text + ".\n";
}

/// What cannot be reached, and how far the split is from it.
std::string bound_text(const TuneReport& report) {
  const study::Certificate& certificate = report.certificate;
  if (!certificate.holds()) {
    return " No bound is known: a simulated split lies below that of the costs, as allreduces take less in it than by "
           "themselves.\n";
  }
  return fmt::format(
      " No split {} {} ms, as gradients from {} on cannot begin earlier: gap {:.2f} %, simulated {:.2f} %.\n",
      report.objective == Objective::step ? "has a step below" : "ends before", milliseconds(certificate.bound.time),
      certificate.bound.gradient, report.gap() * 100, report.simulated_gap() * 100);
}

/// What is reached, and what cannot be.
std::string proof_text(const TuneReport& report) {
  const study::Split& chosen = report.chosen;
  const std::string end = fmt::format("{} ms, {} ms behind the backward pass", milliseconds(chosen.finish),
                                      milliseconds(chosen.finish - report.backward_end));
  const std::string reached =
      report.objective == Objective::step
          ? fmt::format("The step takes {} ms, simulated {} ms; its last allreduce ends at {}, simulated {} ms.",
                        milliseconds(chosen.step), milliseconds(report.best.step), end,
                        milliseconds(report.best.finish))
          : fmt::format("The last allreduce ends at {}; simulated, at {} ms.", end, milliseconds(report.best.finish));
  return reached + bound_text(report);
}

std::string certificate(const TuneReport& report) {
  std::string text = proof_text(report) + chain_text(report.chain) + premises_text(report);
  if (!report.hcom_parallel) text += serial_text(report);
  if (report.tuning.verified.has_value()) {
    const bool agrees =
        report.tuning.verified->time(report.objective) >= report.tuning.best.time(report.objective) * (1 - 1e-12);
    text += fmt::format("All splits tried: {}.\n",
                        agrees ? "none is better by the cost" : "ONE IS BETTER, please report this");
  }
  return text;
}

std::string comparison(const TuneReport& report) {
  Table table({{"split", Table::Align::left},
               {"segments"},
               {"ends ms"},
               {"exposed ms"},
               {"step ms"},
               {"simulated ends ms"},
               {"simulated step ms"},
               {"last indices", Table::Align::left}});
  const auto time = [](Seconds seconds) { return seconds < study::never ? milliseconds(seconds) : "-"; };
  const auto add = [&](const std::string& name, const study::Split& split,
                       const std::optional<study::ConfirmedSplit>& confirmed) {
    table.add_row({name, split.cuts.empty() ? "-" : std::to_string(split.cuts.size()), time(split.finish),
                   time(split.finish - report.backward_end), time(split.step),
                   confirmed.has_value() ? milliseconds(confirmed->finish) : "-",
                   confirmed.has_value() ? milliseconds(confirmed->step) : "-", list(split.cuts)});
  };
  for (std::size_t i = 0; i < report.tuning.strategies.size(); ++i) {
    add(report.tuning.strategies[i].name, report.tuning.strategies[i].split, report.strategies[i]);
  }
  for (std::size_t k = 0; k < report.by_segments.size(); ++k) {
    add(fmt::format("best of {}", k + 1), report.tuning.by_segments[k], report.by_segments[k]);
  }
  if (holds(report.compare, study::Strategy::Kind::bound) && report.certificate.holds()) {
    const Seconds bound = report.certificate.bound.time;
    const bool of_step = report.objective == Objective::step;
    add("no split before", {{}, of_step ? study::never : bound, of_step ? bound : study::never}, {});
  }
  std::string text = table.to_string();
  const auto is_dear = [](const study::NamedSplit& strategy) { return strategy.split.cuts.empty(); };
  if (std::any_of(report.tuning.strategies.begin(), report.tuning.strategies.end(), is_dear)) {
    text +=
        "DeAR is no split: its reduce-scatters and all-gathers, each at half the line's cost, have another bound, and "
        "`run` does not simulate them.\n";
  }
  return text;
}

/// The largest distance of what the cost predicts to what is simulated.
std::string prediction_text(const TuneReport& report) {
  double largest = 0;
  std::string name;
  const auto consider = [&](const std::string& split, Seconds predicted, Seconds simulated) {
    const double difference = std::abs(predicted / simulated - 1);
    if (name.empty() || difference > largest) name = split;
    largest = std::max(largest, difference);
  };
  const Objective objective = report.objective;
  for (std::size_t i = 0; i < report.strategies.size(); ++i) {
    if (!report.strategies[i].has_value()) continue;
    const study::NamedSplit& strategy = report.tuning.strategies[i];
    consider(strategy.name, strategy.split.time(objective), report.strategies[i]->time(objective));
  }
  for (std::size_t k = 0; k < report.by_segments.size(); ++k) {
    consider(fmt::format("best of {}", k + 1), report.tuning.by_segments[k].time(objective),
             report.by_segments[k].time(objective));
  }
  if (name.empty()) return {};
  return fmt::format("Predicted {} are within {:.2f} % of the simulated ones ('{}').\n",
                     objective == Objective::step ? "steps" : "ends",
                     std::max(0.0, std::ceil(largest * 1e4 - 1e-6)) / 100, name);
}

/// "has a shorter step" or "ends earlier".
std::string_view is_better(Objective objective) {
  return objective == Objective::step ? "has a shorter step" : "ends earlier";
}

/// Says that the cost misjudges splits, where simulation preferred another.
std::string preferred_text(const TuneReport& report) {
  if (!report.preferred.has_value()) return {};
  const Seconds best = report.best.time(report.objective);
  const Seconds by_cost = report.best_by_cost.time(report.objective);
  return fmt::format(
      "Simulated, '{}' {} than the best by the cost, [{}]: {} instead of {} ms, {:.2f} % less; so it is "
      "what stands above.\n",
      *report.preferred, is_better(report.objective), list(report.tuning.best.cuts), milliseconds(best),
      milliseconds(by_cost), (1 - best / by_cost) * 100);
}

std::string with_more_segments(const TuneReport& report) {
  const Seconds best = report.best.time(report.objective);
  const auto rival = report.better_than(best, report.gradients);
  if (!rival.has_value()) return {};
  const Seconds time = rival->times.time(report.objective);
  return fmt::format("With more than {} segment{}, '{}' {}: {} segments, {} ms, {:.2f} % less.\n", report.most_segments,
                     report.most_segments == 1 ? "" : "s", rival->name, is_better(report.objective), rival->cuts.size(),
                     milliseconds(time), (1 - time / best) * 100);
}

/// What gives the shorter step of those simulated, where the objective was another.
std::string step_text(const TuneReport& report) {
  if (report.objective == Objective::step) return {};
  const auto shorter = report.shortest_step();
  if (!shorter.has_value()) return {};
  return fmt::format(
      "The objective is the end of communication; '{}' has a shorter step, {} ms instead of {} ms: "
      "--objective step looks for the shortest.\n",
      shorter->name, milliseconds(shorter->times.step), milliseconds(report.best.step));
}

/// "ends 0.012 ms (0.1 %) later than …" or that nothing is better.
std::string regret_text(const study::Regret& regret) {
  if (regret.none()) return "stays the best";
  return fmt::format("ends {} ms ({:.2f} %) later than the best, [{}]", milliseconds(regret.time()),
                     regret.fraction() * 100, list(regret.best));
}

std::string jitter_text(const study::JitterResult& jitter) {
  const study::JitterOutcome& outcome = jitter.outcome;
  return fmt::format(
      "All figures above are without jitter. Kernel times with a relative standard deviation of {:g}, {} draws (seed "
      "{}): the split is the best in {:.1f} % "
      "of them; it ends {} ms later than the best on average, {} ms at worst ({:.2f} % of an end at most).\n",
      jitter.jitter, outcome.draws, jitter.seed, 100.0 * outcome.optimal / outcome.draws,
      milliseconds(outcome.mean_regret), milliseconds(outcome.worst_regret), outcome.worst_fraction * 100);
}

std::string bandwidth_text(const study::BandwidthResult& bandwidth) {
  const std::string links =
      bandwidth.kind.has_value() ? fmt::format("{} links", name_of(*bandwidth.kind)) : "all links";
  std::string text = fmt::format(
      "Bandwidth of {} times {:g} to {:g}, costs simulated at {} factors: at {:g} the split {}, at {:g} it {}.\n",
      links, bandwidth.intervals.front().from, bandwidth.intervals.back().to, bandwidth.simulated,
      bandwidth.intervals.front().from, regret_text(bandwidth.at_lowest), bandwidth.intervals.back().to,
      regret_text(bandwidth.at_highest));
  Table table({{"from factor"}, {"to"}, {"segments"}, {"best split", Table::Align::left}});
  for (const study::BandwidthInterval& interval : bandwidth.intervals) {
    table.add_row({fmt::format("{:.4f}", interval.from), fmt::format("{:.4f}", interval.to),
                   std::to_string(interval.cuts.size()), list(interval.cuts)});
  }
  return text + table.to_string("  ");
}

std::string sensitivity_text(const std::vector<study::Sensitivity>& all) {
  if (all.empty()) return {};
  std::string text = "Sensitivity, with ready times of the same backward pass";
  const char* separator = " in proportion to ";
  for (const study::Sensitivity& sensitivity : all) {
    text += fmt::format("{}{}: the split {}", separator, sensitivity.quantity, regret_text(sensitivity.regret));
    separator = "; to ";
  }
  return text + ".\n";
}

std::string robustness(const TuneReport& report) {
  std::string text;
  if (report.jitter.has_value()) text += jitter_text(*report.jitter);
  if (report.bandwidth.has_value()) text += bandwidth_text(*report.bandwidth);
  return text + sensitivity_text(report.sensitivity);
}

std::string two_streams(const study::Tuning& tuning) {
  if (tuning.two_links.has_value()) {
    const study::TwoLinkSplit& split = *tuning.two_links;
    return fmt::format(
        "Two streams on links of their own, communication ends: {}, last indices {}, streams {}\n"
        "Premises: the same ready times, runs of gradients; each link costs what one costs alone; not simulated.\n",
        split.exact ? fmt::format("{} ms (exact)", milliseconds(split.finish))
                    : fmt::format("between {} ms (bound) and {} ms (best found)", milliseconds(split.bound),
                                  milliseconds(split.finish)),
        list(split.cuts), fmt::join(split.streams, ","));
  }
  if (tuning.shared_link.has_value()) {
    const study::Bracket& bracket = *tuning.shared_link;
    return fmt::format(
        "Two streams on one link, communication ends: between {} ms (bound) and {} ms (best {}), last indices {}\n"
        "Premises: the same ready times, runs of gradients; start-ups pass without the link, the rest shares it; not "
        "simulated.\n",
        milliseconds(bracket.bound), milliseconds(bracket.best_found.finish), bracket.exact ? "of all splits" : "found",
        list(bracket.best_found.cuts));
  }
  return {};
}

std::string timeline_text(const TuneReport& report) {
  Table table({{"segment", Table::Align::left},
               {"bytes"},
               {"starts ms"},
               {"ends ms"},
               {"followed until ms"},
               {"waits for", Table::Align::left}});
  for (const study::SegmentTime& segment : report.timeline) {
    table.add_row({fmt::format("[{},{}]", segment.first, segment.last), with_thousands(segment.bytes),
                   milliseconds(segment.start), milliseconds(segment.end), milliseconds(segment.followed),
                   segment.waits_for_gradient ? fmt::format("gradient {}", segment.last) : "the stream"});
  }
  return table.to_string();
}

/// What the given split says of the links that it was tuned for.
std::string link_speeds_text(const TuneReport& report) {
  std::string text;
  const std::string what = report.objective == study::Objective::step ? "the shortest step" : "the earliest end";
  for (const study::LinkSpeedsOfSplit& speeds : report.link_speeds) {
    const std::string links = fmt::format("{} links", study::title_of(speeds.kind));
    if (speeds.best.empty()) {
      text += fmt::format(
          "The given split {} has {} of all with at most {} segments for no speed of {} from {:.4g} to {:.4g} GB/s; it "
          "loses least at {:.4g} GB/s, {} ms (used: {:g} GB/s).\n",
          list(report.given), what, report.given.size(), links, speeds.from / giga, speeds.to / giga,
          speeds.least_lost_at / giga, milliseconds(speeds.lost), speeds.used / giga);
      continue;
    }
    std::vector<std::string> ranges;
    for (const auto& [from, to] : speeds.best)
      ranges.push_back(fmt::format("{:.4g} to {:.4g}", from / giga, to / giga));
    text +=
        fmt::format("The given split {} has {} of all with at most {} segments for {} of {} GB/s (used: {:g}).\n",
                    list(report.given), what, report.given.size(), links, fmt::join(ranges, ", "), speeds.used / giga);
  }
  return text;
}

}  // namespace

std::string tune_text(const TuneReport& report) {
  std::string text = report.profile.has_value() ? profile_text(*report.profile) : "";
  text += fmt::format("{}: {} gradients, {} bytes; {} x {}, {}, contention {}\n", report.model, report.gradients,
                      with_thousands(report.bytes), report.npus, report.npu, report.platform,
                      on_off(report.hbm_contention));
  text += cost_text(report) + '\n';
  // HCCL itself numbers gradients as they are produced.
  if (!report.by_parameter)
    text += fmt::format("  set_split_strategy_by_idx([{}])\n", fmt::join(report.chosen.cuts, ","));
  if (!report.by_parameter && !report.percentages.empty()) {
    text += fmt::format("  set_split_strategy_by_size([{}])\n", percentages_text(report.percentages));
  }
  text += fmt::format("  all_reduce_fusion_config=[{}]{}\n\n", fmt::join(report.mindspore, ","),
                      report.mindspore_exact ? "" : "  # nearest: some segments are no runs in parameter order");
  text += certificate(report) + two_streams(report.tuning) + '\n' + comparison(report) + prediction_text(report) +
          preferred_text(report) + with_more_segments(report) + step_text(report) + robustness(report);
  if (report.explain) text += '\n' + timeline_text(report) + link_speeds_text(report);
  text += unmodelled_line(report.unmodelled);
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace hcclsim::cli
