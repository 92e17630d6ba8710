#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/options/hccl_options.hpp"
#include "cli/print/output.hpp"
#include "cli/print/profile_report.hpp"
#include "cli/print/tune_report.hpp"

// The form of tune_report.hpp for people.

namespace hcclsim::cli {
namespace {

std::string list(const std::vector<std::uint32_t>& numbers) {
  constexpr std::size_t most = 12;
  if (numbers.size() <= most) return fmt::format("{}", fmt::join(numbers, ","));
  return fmt::format("{},…,{}", fmt::join(numbers.begin(), numbers.begin() + most - 2, ","), numbers.back());
}

std::string cost_text(const TuneReport& report) {
  const study::AffineCost& cost = report.fit.cost;
  const std::string speed = cost.beta > 0 ? fmt::format(" + n / {:.3f} GB/s", 1 / cost.beta / giga) : "";
  std::string text = fmt::format(
      "Cost of an allreduce of n bytes: {:.2f} us{}, fitted to {} simulated sizes, largest error "
      "{:.1f} %\n",
      cost.alpha / microsecond, speed, report.cost_points, report.fit.largest_error * 100);
  constexpr double far_off = 0.05;
  if (report.cost_model == study::CostModel::affine && report.fit.largest_error > far_off) {
    text +=
        "That line is far off: --cost table takes the simulated sizes themselves, --cost simulated every segment's "
        "own\n";
  }
  if (report.cost_model == study::CostModel::table)
    text += "Ends below are those of the simulated sizes, straight between them\n";
  if (report.cost_model == study::CostModel::simulated)
    text += "Ends below are those of each segment simulated by itself\n";
  return text;
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

/// The segments of the critical chain behind its first one.
std::string followers(std::size_t segments) {
  if (segments == 0) return "no segment follows it";
  return segments == 1 ? "one segment follows it without a gap"
                       : fmt::format("{} segments follow it without a gap", segments);
}

/// What cuts cost where they hide nothing, by the simulated split of the most segments.
std::string serial_text(const TuneReport& report) {
  std::string text =
      "hcom_parallel is off: allreduces begin when the backward pass has ended and follow each other, so that no cut "
      "hides anything; ";
  const std::size_t best_segments = report.tuning.best.cuts.size();
  text += best_segments == 1 ? "one segment is optimal."
                             : "the cost has a step above which several segments are cheaper than one.";
  std::size_t most = best_segments;
  std::string name;
  Seconds more = 0;
  for (std::size_t i = 0; i < report.strategies.size(); ++i) {
    const study::NamedSplit& split = report.tuning.strategies[i];
    if (!report.strategies[i].has_value() || split.cuts.size() <= most) continue;
    most = split.cuts.size();
    name = split.name;
    more = report.strategies[i]->finish - report.best.finish;
  }
  if (name.empty()) return text + '\n';
  return text + fmt::format(" Simulated, '{}' ends {} ms {}, {:.2f} us for each further segment.\n", name,
                            milliseconds(std::abs(more)), more < 0 ? "earlier" : "later",
                            std::abs(more) / microsecond / static_cast<double>(most - best_segments));
}

std::string certificate(const TuneReport& report) {
  const study::Tuning& tuning = report.tuning;
  std::string text = fmt::format(
      "The last allreduce ends at {} ms, {} ms behind the backward pass; simulated, at {} ms. No split ends before {} "
      "ms, as gradients from {} on cannot begin earlier: gap {:.2f} %, simulated {:.2f} %.\n",
      milliseconds(tuning.best.finish), milliseconds(tuning.best.finish - report.backward_end),
      milliseconds(report.best.finish), milliseconds(report.certificate.bound.finish),
      report.certificate.bound.gradient, report.gap() * 100, report.simulated_gap() * 100);
  const study::SegmentTime& first = tuning.chain.front();
  text += fmt::format("Critical: segment [{},{}] begins at {} ms, when {}; {}.\n", first.first, first.last,
                      milliseconds(first.start),
                      first.waits_for_gradient ? fmt::format("gradient {} is ready", first.last) : "the stream is free",
                      followers(tuning.chain.size() - 1));
  text += fmt::format(
      "Premises: fixed ready times, the same for every split; contiguous cuts, runs of gradients in production order; "
      "one stream; for the bound, costs not below the lower hull of those of {} sizes{}{}{}.\n",
      report.certificate.sizes,
      report.cost_model == study::CostModel::affine ? "; for the optimum, those of the line" : "",
      report.start_skew > 0
          ? fmt::format(
                "; NPUs that start at one date, while simulated ones start within {:g} us and wait for the last",
                report.start_skew / microsecond)
          : "",
      report.op_mode ? "; allreduces that their hosts have launched by the time their gradients are ready" : "");
  if (!report.hcom_parallel) text += serial_text(report);
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
                       const std::optional<study::ConfirmedSplit>& confirmed) {
    table.add_row({name, cuts.empty() ? "-" : std::to_string(cuts.size()), milliseconds(finish),
                   milliseconds(finish - report.backward_end),
                   confirmed.has_value() ? milliseconds(confirmed->finish) : "-",
                   confirmed.has_value() ? milliseconds(confirmed->step) : "-", list(cuts)});
  };
  for (std::size_t i = 0; i < report.tuning.strategies.size(); ++i) {
    const study::NamedSplit& split = report.tuning.strategies[i];
    add(split.name, split.cuts, split.finish, report.strategies[i]);
  }
  for (std::size_t k = 0; k < report.by_segments.size(); ++k) {
    const study::Split& split = report.tuning.by_segments[k];
    add(fmt::format("best of {}", k + 1), split.cuts, split.finish, report.by_segments[k]);
  }
  if (holds(report.compare, study::Strategy::Kind::bound)) {
    add("no split before", {}, report.certificate.bound.finish, {});
  }
  std::string text = table.to_string();
  const auto is_dear = [](const study::NamedSplit& split) { return split.cuts.empty(); };
  if (std::any_of(report.tuning.strategies.begin(), report.tuning.strategies.end(), is_dear)) {
    text +=
        "DeAR is no split: its reduce-scatters and all-gathers, each at half the line's cost, have another bound, and "
        "`run` does not simulate them.\n";
  }
  return text;
}

/// The largest distance of an end that the cost predicts to the simulated one.
std::string prediction_text(const TuneReport& report) {
  double largest = 0;
  std::string name;
  const auto consider = [&](const std::string& split, Seconds predicted, Seconds simulated) {
    const double difference = std::abs(predicted / simulated - 1);
    if (name.empty() || difference > largest) name = split;
    largest = std::max(largest, difference);
  };
  for (std::size_t i = 0; i < report.strategies.size(); ++i) {
    const study::NamedSplit& split = report.tuning.strategies[i];
    if (report.strategies[i].has_value()) consider(split.name, split.finish, report.strategies[i]->finish);
  }
  for (std::size_t k = 0; k < report.by_segments.size(); ++k) {
    consider(fmt::format("best of {}", k + 1), report.tuning.by_segments[k].finish, report.by_segments[k].finish);
  }
  if (name.empty()) return {};
  return fmt::format("Predicted ends are within {:.2f} % of the simulated ones ('{}').\n",
                     std::max(std::ceil(largest * 1e4 - 1e-6), 0.0) / 100, name);
}

/// Says that the cost misjudges splits, where a simulated one ends first.
std::string earlier_end(const TuneReport& report) {
  const auto earlier = report.earlier_end();
  if (!earlier.has_value()) return {};
  return fmt::format("Simulated, '{}' ends earlier than the best by the cost: [{}], at {} ms, {:.2f} % less{}.\n",
                     earlier->name, fmt::join(earlier->cuts, ","), milliseconds(earlier->times.finish),
                     (1 - earlier->times.finish / report.best.finish) * 100,
                     report.cost_model == study::CostModel::simulated
                         ? "; allreduces take another time in the step than by themselves"
                         : "; --cost simulated takes every segment's own cost");
}

/// What the update of the parameters adds is not part of the problem.
std::string shorter_steps(const TuneReport& report) {
  const auto describe = [&](const TuneReport::Rival& shorter) {
    return fmt::format(
        "'{}', {} segment{}{}: {} ms, {:.2f} % less", shorter.name, shorter.cuts.size(),
        shorter.cuts.size() == 1 ? "" : "s",
        shorter.cuts.size() <= report.most_segments ? fmt::format(" [{}]", fmt::join(shorter.cuts, ",")) : "",
        milliseconds(shorter.times.step), (1 - shorter.times.step / report.best.step) * 100);
  };
  const auto shortest = report.shorter_step(report.gradients);
  if (!shortest.has_value()) return {};
  std::string text = fmt::format(
      "The optimum is that of communication. Counting the updates, each of which follows its allreduce, the shortest "
      "step of these is that of {}",
      describe(*shortest));
  if (shortest->cuts.size() > report.most_segments) {
    const auto allowed = report.shorter_step(report.most_segments);
    text +=
        fmt::format("; with at most {}, {}", report.most_segments,
                    allowed.has_value() ? "that of " + describe(*allowed) : "none is shorter than the best split's");
  }
  return text + ".\n";
}

/// "ends 0.012 ms (0.1 %) later than …" or that nothing ends earlier.
std::string regret_text(const study::Regret& regret) {
  if (regret.none()) return "stays the best";
  return fmt::format("ends {} ms ({:.2f} %) later than the best, [{}]", milliseconds(regret.time()),
                     regret.fraction() * 100, list(regret.best.cuts));
}

std::string jitter_text(const study::JitterResult& jitter) {
  const study::JitterOutcome& outcome = jitter.outcome;
  return fmt::format(
      "Kernel times with a relative standard deviation of {:g}, {} draws (seed {}): the split is the best in {:.1f} % "
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
        "Two streams on links of their own: {}, last indices {}, streams {}\n"
        "Premises: the same ready times, runs of gradients; each link costs what one costs alone; not simulated.\n",
        split.exact ? fmt::format("{} ms (exact)", milliseconds(split.finish))
                    : fmt::format("between {} ms (bound) and {} ms (best found)", milliseconds(split.bound),
                                  milliseconds(split.finish)),
        list(split.cuts), fmt::join(split.streams, ","));
  }
  if (tuning.shared_link.has_value()) {
    const study::Bracket& bracket = *tuning.shared_link;
    return fmt::format(
        "Two streams on one link: between {} ms (bound) and {} ms (best {}), last indices {}\n"
        "Premises: the same ready times, runs of gradients; start-ups pass without the link, the rest shares it; not "
        "simulated.\n",
        milliseconds(bracket.bound), milliseconds(bracket.best_found.finish), bracket.exact ? "of all splits" : "found",
        list(bracket.best_found.cuts));
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

}  // namespace

std::string tune_text(const TuneReport& report) {
  std::string text = report.profile.has_value() ? profile_text(*report.profile) : "";
  text += fmt::format("{}: {} gradients, {} bytes; {} x {}, {}\n", report.model, report.gradients,
                      with_thousands(report.bytes), report.npus, report.npu, report.platform);
  text += cost_text(report) + '\n';
  text += fmt::format("  set_split_strategy_by_idx([{}])\n", fmt::join(report.tuning.best.cuts, ","));
  if (!report.percentages.empty()) {
    text += fmt::format("  set_split_strategy_by_size([{}])\n", percentages_text(report.percentages));
  }
  text += fmt::format("  all_reduce_fusion_config=[{}]{}\n\n", fmt::join(report.mindspore, ","),
                      report.mindspore_exact ? "" : "  # nearest: some segments are no runs in parameter order");
  text += certificate(report) + two_streams(report.tuning) + '\n' + comparison(report) + prediction_text(report) +
          earlier_end(report) + shorter_steps(report) + robustness(report);
  if (report.explain) text += '\n' + timeline_text(report.tuning);
  text += unmodelled_line(report.unmodelled);
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace hcclsim::cli
