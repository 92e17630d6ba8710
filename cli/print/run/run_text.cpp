#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "cli/options/hccl_options.hpp"
#include "cli/print/baseline.hpp"
#include "cli/print/explanation.hpp"
#include "cli/print/link_report.hpp"
#include "cli/print/plan/comm_reuse_report.hpp"
#include "cli/print/profile_report.hpp"
#include "cli/print/run/goodput_report.hpp"
#include "cli/print/run/host_report.hpp"
#include "cli/print/run/iteration.hpp"
#include "cli/print/run/mapping.hpp"
#include "cli/print/run/numerics_report.hpp"
#include "cli/print/run/parallel_report.hpp"
#include "cli/print/run/routing.hpp"
#include "cli/print/run/run_report.hpp"
#include "cli/print/run/uncertainty.hpp"
#include "cli/terminal/output.hpp"

// The form of run_report.hpp for people, in the words of msprof and of the vendor's split guide.
namespace hcclsim::cli {
namespace {

/// More segments than this are not all shown; --format csv has them all.
constexpr std::size_t most_rows = 10;
constexpr std::size_t most_parameter_text = 24;
/// Allreduces of which the trace points are written out.
constexpr std::size_t most_trace_points = 4;

double ms(Seconds time) { return time * 1e3; }
double percent(double fraction) { return fraction * 100; }

/// "-12.3 %" of the step that was simulated first.
std::string change(Seconds time, Seconds reference) {
  constexpr double shown = 0.05;  // less is 0
  const double change = percent((time - reference) / reference);
  return fmt::format("{:+.1f} %", std::abs(change) < shown ? 0 : change);
}

std::string head(const RunReport& report) {
  return fmt::format(
      "{}, {} x {} ({}), batch {}, {}, {}\n"
      "framework {}, hcom_parallel {}, {}split {} -> segment index list: {}\n",
      report.program->title, report.npus, report.npu, report.platform, report.batch_text(), report.amp,
      report.gradients_text(), report.framework, report.hcom_parallel ? "on" : "off",
      report.launch == "graph" ? "" : fmt::format("launch {}, ", report.launch), report.split, report.segment_list());
}

/// What the run has otherwise than a run without options.
std::string settings_line(const RunReport& report) {
  if (report.changed_settings.empty()) return {};
  std::vector<std::string> settings;
  for (const auto& [name, value] : report.changed_settings) {
    const bool is_time = name == "start-skew";  // in seconds
    settings.push_back(
        fmt::format("{} {}", name, is_time ? fmt::format("{:g} us", std::stod(value) / microsecond) : value));
  }
  return fmt::format("Settings: {}\n", fmt::join(settings, ", "));
}

std::string step_line(const RunReport& report) {
  const Seconds step = report.step_time();
  std::string line = fmt::format("Step {:.3f} ms", ms(step));
  if (report.uncertainty.has_value()) {
    line += fmt::format(" ({:.3f}..{:.3f} over what is assumed)", ms(report.uncertainty->fastest),
                        ms(report.uncertainty->slowest));
  }
  const bool sequences = report.throughput.has_value() && report.throughput->tokens_per_second > 0;
  line += fmt::format("   {:.1f} {}/s", report.images_per_second(), sequences ? "sequences" : "images");
  if (report.one_npu_step.has_value()) {
    const double ideal = static_cast<double>(report.program->batch) * report.npus / *report.one_npu_step;
    line +=
        fmt::format("   efficiency {:.1f} % of {} x one NPU", percent(report.images_per_second() / ideal), report.npus);
  }
  line += '\n';
  if (report.throughput.has_value()) line += throughput_line(*report.throughput);
  if (report.explain_uncertainty && report.uncertainty.has_value()) {
    line += "Range of the step over what is assumed:\n" + effects_table(*report.uncertainty);
  } else if (report.uncertainty.has_value()) {
    const std::string effects = largest_effects(*report.uncertainty);
    if (!effects.empty()) line += fmt::format("Matters most: {}\n", effects);
  }
  if (report.routing.has_value()) {
    line += fmt::format("Hashed ways: step {}\n",
                        routing_text(*report.routing, [](Seconds time) { return fmt::format("{:.3f} ms", ms(time)); }));
  }
  if (const auto spread = report.spread(); spread.has_value()) {
    const std::string least = fmt::format("{:.3f}", ms(spread->least));
    const std::string most = fmt::format("{:.3f}", ms(spread->most));
    if (least != most) {
      line += fmt::format("Steps from {} to {} ms: p50 {:.3f}, p99 {:.3f} of {}\n", least, most, ms(spread->p50),
                          ms(spread->p99), spread->steps);
    }
  }
  return line;
}

/// What steps take while links and NPUs fail.
std::string fault_line(const RunReport& report) {
  if (!report.faults.has_value()) return {};
  const study::FaultResult& faults = *report.faults;
  constexpr std::size_t most_steps = 12;
  std::vector<std::string> steps;
  for (std::size_t i = 0; i < std::min(most_steps, faults.steps.size()); ++i) {
    steps.push_back(fmt::format("{:.3f}", ms(faults.steps[i])));
  }
  const std::size_t more = faults.steps.size() - steps.size();
  std::string line = fmt::format("Steps with faults, from the first on: {}{} ms", fmt::join(steps, ", "),
                                 more > 0 ? fmt::format(" and {} more", more) : "");
  if (faults.without.has_value()) {
    const bool one = faults.steps.size() == 1;
    line += fmt::format("; without faults {:.3f} ms{} {}", ms(*faults.without),
                        one ? ":" : ", to which a step of those but the first is",
                        change(report.step_time(), *faults.without));
  }
  return line + '\n';
}

std::string start_up_line(const RunReport& report) {
  if (!report.start_up.has_value()) return {};
  const study::StartUpResult& once = *report.start_up;
  std::vector<std::string> parts;
  const auto add = [&](Bytes bytes, std::string_view what) {
    if (bytes > 0) parts.push_back(fmt::format("{} ({:.2f} MB)", what, static_cast<double>(bytes) / 1e6));
  };
  const bool stages = report.parallel.has_value() && report.parallel->shape.stages > 1;
  add(once.broadcast,
      fmt::format("{} in fp32{}{}",
                  stages ? "the first rank of each stage broadcasts its weights" : "rank 0 broadcasts the weights",
                  once.all_weights ? "" : ", but for those of which ranks keep parts", stages ? ", in all" : ""));
  add(once.copied, "weights that several stages have are copied");
  return fmt::format("Once before the first step: {}: {:.3f} ms\n", fmt::join(parts, ", "), ms(once.time));
}

std::string parallel_line(const RunReport& report) {
  if (!report.other_hcom_parallel_step.has_value()) return {};
  return fmt::format("hcom_parallel {} would give {:.3f} ms ({})\n", report.hcom_parallel ? "off" : "on",
                     ms(*report.other_hcom_parallel_step),
                     change(*report.other_hcom_parallel_step, report.step_time()));
}

std::string busy_line(const RunReport& report) {
  const hccl::StepView& view = report.view;
  std::string phases;
  if (view.phases.forward > 0) {
    phases = fmt::format("FP {:.3f} | BP {:.3f}", ms(view.phases.forward), ms(view.phases.backward));
    if (report.batch.micro_batches > 1) phases += fmt::format(" in {} micro-batches", report.batch.micro_batches);
    phases += " | ";
  }
  return phases +
         fmt::format(
             "Computing {:.3f} | Communication {:.3f} | Overlapped {:.3f} | Communication(Not Overlapped) {:.3f} | "
             "Free {:.3f} ms\n",
             ms(view.computing), ms(view.communicating), ms(view.communicating - view.not_overlapped),
             ms(view.not_overlapped), ms(view.free()));
}

/// All trace points in the order of their dates.
std::string trace_line(const RunReport& report) {
  struct Point {
    std::string name;
    Seconds date;
  };
  const auto& segments = report.view.segments;
  std::vector<Point> points{{"fp_start", 0}, {"bp_end", report.view.bp_end}};
  for (std::size_t i = 0; i < segments.size() && report.npus > 1; ++i) {
    if (segments.size() > most_trace_points && i + 1 >= most_trace_points && i + 1 < segments.size()) continue;
    points.push_back({fmt::format("allreduce{}_start", i + 1), segments[i].start});
    points.push_back({fmt::format("allreduce{}_end", i + 1), segments[i].end});
  }
  points.push_back({"iteration_end", report.view.iteration_end});
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.date < b.date; });
  std::string line = "Trace (ms):";
  for (const Point& point : points) line += fmt::format(" {} {:.3f} ", point.name, ms(point.date));
  line.back() = '\n';
  return line;
}

std::vector<std::string> row(const RunReport& report, std::size_t number) {
  const hccl::SegmentFigures& segment = report.view.segments[number];
  std::string parameters = to_string(report.parameters_of(segment.segment));
  if (parameters.size() > most_parameter_text) parameters = parameters.substr(0, most_parameter_text - 2) + "..";
  return {fmt::format("{}", number + 1),
          fmt::format("[{},{}]", segment.segment.first, segment.segment.last),
          parameters,
          fmt::format("{}", segment.segment.tensors()),
          fmt::format("{:.3f}", static_cast<double>(segment.bytes) / 1e6),
          fmt::format("{:.2f}", percent(segment.share)),
          fmt::format("{:.3f}", ms(segment.ready)),
          fmt::format("{:.3f}", ms(segment.start)),
          fmt::format("{:.3f}", ms(segment.end)),
          fmt::format("{:.1f}", percent(segment.hidden)),
          fmt::format("{:.2f}", segment.algbw / giga),
          fmt::format("{:.2f}", segment.busbw / giga),
          segment.algorithm,
          report.bottleneck_of(segment)};
}

std::string segment_table(const RunReport& report) {
  using Align = Table::Align;
  Table table({{"AR"},
               {"index", Align::left},
               {"parameters", Align::left},
               {"tensors"},
               {"MB"},
               {"share %"},
               {"ready"},
               {"start"},
               {"end ms"},
               {"hidden %"},
               {"algbw"},
               {"busbw GB/s"},
               {"algorithm", Align::left},
               {"limited by", Align::left}});
  const std::size_t count = report.view.segments.size();
  const bool shortened = count > most_rows;
  for (std::size_t i = 0; i < (shortened ? most_rows - 1 : count); ++i) table.add_row(row(report, i));
  if (shortened) table.add_row(row(report, count - 1));
  std::string text = table.to_string();
  if (shortened) text += fmt::format("({} more segments: --format csv)\n", count - most_rows);
  return text;
}

/// What happens after bp_end, named in the order in which it happens.
std::string tail_line(const RunReport& report) {
  const hccl::StepView& view = report.view;
  std::vector<std::string> parts;
  Seconds communication_end = view.bp_end;
  for (std::size_t i = 0; i < view.segments.size(); ++i) {
    const hccl::SegmentFigures& segment = view.segments[i];
    const Seconds after = segment.end - std::max(segment.start, view.bp_end);
    communication_end = std::max(communication_end, segment.end);
    if (after > 0) parts.push_back(fmt::format("AR{} {:.3f}", i + 1, ms(after)));
  }
  if (parts.size() > most_rows) {
    parts = {fmt::format("{} allreduces {:.3f}", parts.size(), ms(communication_end - view.bp_end))};
  }
  if (view.checks.has_value()) {
    parts.push_back(fmt::format("checks {:.3f}", ms(view.checks->end - communication_end)));
    communication_end = view.checks->end;
  }
  parts.push_back(fmt::format("update {:.3f}", ms(view.device_end() - communication_end)));
  if (view.iteration_end > view.device_end()) {
    parts.push_back(fmt::format("checkpoint {:.3f}", ms(view.iteration_end - view.device_end())));
  }
  return fmt::format("Tail (hang-over after bp_end) {:.3f} ms: {}\n", ms(view.iteration_end - view.bp_end),
                     fmt::join(parts, ", "));
}

/// The checks between the allreduces and the updates.
std::string checks_lines(const RunReport& report) {
  if (!report.view.checks.has_value()) return {};
  const hccl::GradientCheckTimes& checks = *report.view.checks;
  std::string text;
  if (!checks.algorithm.empty()) {
    text += fmt::format("Overflow check (loss scale {}): from {:.3f} ms, flag of 4 bytes ({}) {:.3f} to {:.3f} ms\n",
                        report.loss_scale, ms(checks.start), report.npus > 1 ? checks.algorithm : "one NPU",
                        ms(checks.flag.start), ms(checks.flag.end));
  }
  if (report.clip_norm.has_value()) {
    text += fmt::format("Clipping to global norm {:g}: from {:.3f} ms, factor known at {:.3f} ms\n", *report.clip_norm,
                        ms(checks.start), ms(checks.kernels_end));
  }
  const std::string skipped = checks.algorithm.empty() ? "" : "; a step without update is timed like any other";
  return text + fmt::format("All updates wait until {:.3f} ms{}\n", ms(checks.end), skipped);
}

/// As `run` takes it.
std::string split_option(const study::Trial& trial) {
  if (!trial.fusion_index.empty()) return fmt::format("--fusion-index {}", fmt::join(trial.fusion_index, ","));
  return trial.by_size.empty() ? fmt::format("--split-by-idx {}", fmt::join(trial.by_idx, ","))
                               : fmt::format("--split-by-size {}", fmt::join(trial.by_size, ","));
}

std::string compression_text(const RunReport& report) {
  if (!report.compression.has_value()) return {};
  const study::CompressionResult& result = *report.compression;
  const auto megabytes = [](Bytes bytes) { return static_cast<double>(bytes) / 1e6; };
  std::string text = fmt::format("Compression {}\n", result.text);
  if (report.parallel.has_value() && report.parallel->stages.size() > 1) {
    const std::vector<study::StageFigures>& stages = report.parallel->stages;
    text += fmt::format("  Sizes are those of rank {}, in stage {} of {}\n", report.rank,
                        report.rank / stages.front().ranks, stages.size());
  }
  text += fmt::format("  A compressed step sends {} of {} elements, {:.3f} of {:.3f} MB{}\n",
                      with_thousands(result.elements_after), with_thousands(result.elements_before),
                      megabytes(result.bytes_after), megabytes(result.bytes_before),
                      result.settings.is_powersgd() ? fmt::format(": rate {:.4g}", result.rate()) : "");
  if (result.compared) {
    text += fmt::format("  Step plain {:.3f} ms, compressed {:.3f} ms ({}): {} {:.3f} ms\n", ms(result.plain_step),
                        ms(result.compressed_step), change(result.compressed_step, result.plain_step),
                        result.saved() < 0 ? "loses" : "saves", std::abs(ms(result.saved())));
  }
  text += fmt::format("  Of the {} iterations above {} are plain and {} compressed",
                      result.plain_iterations + result.compressed_iterations, result.plain_iterations,
                      result.compressed_iterations);
  if (result.settings.is_powersgd()) {
    text += fmt::format("; compression_stats() = ({:.6g}, {}, {})", result.stats_after() > 0 ? result.rate() : 0.0,
                        result.stats_before(), result.stats_after());
  }
  const hccl::HookMemory& memory = result.memory;
  text += fmt::format("\n  HBM {:.3f} MB: errors {:.3f}, copies {:.3f}, P and Q {:.3f}, buffers {:.3f}\n",
                      megabytes(memory.total()), megabytes(memory.errors), megabytes(memory.copies),
                      megabytes(memory.factors), megabytes(memory.buffers));
  return text;
}

std::string advice_line(const RunReport& report) {
  if (!report.advice.has_value()) return {};
  const auto scenario = static_cast<int>(report.advice->scenario);
  const std::string serial = report.hcom_parallel ? "" : " with hcom_parallel on";
  std::string line = scenario == 0 ? fmt::format("No scenario of the split guide{}: ", serial)
                                   : fmt::format("Scenario {}{}: ", scenario, serial);
  line += report.advice->sentence + '.';
  if (report.advice->try_best) {
    const study::Trial& best = report.trials.front();
    line += fmt::format(" Try {}{}: {:.3f} ms (simulated, {})", report.hcom_parallel ? "" : "--hcom-parallel on ",
                        split_option(best), ms(best.step_time), change(best.step_time, report.step_time()));
  }
  return line + '\n';
}

/// Compares the step with other rules of fusion and with hcom_parallel turned; empty unless they were simulated.
std::string fusions_line(const RunReport& report) {
  if (!report.fusions.has_value()) return {};
  const study::FusionTrial& best = report.fusions->trials.front();
  std::string line = fmt::format("Of {} rules of fusion, ", report.fusions->trials.size());
  if (study::is_worthwhile(best.step, report.step_time())) {
    line += fmt::format("the best shortens the step. Try --fusion '{}': {:.3f} ms (simulated, {})",
                        option_text(best.rules), ms(best.step), change(best.step, report.step_time()));
  } else {
    line += fmt::format("none shortens the step by {:g} % or more", study::worthwhile * 100);
  }
  const Seconds turned = report.other_hcom_parallel_step.value();
  return line + fmt::format(". With hcom_parallel {} the step takes {:.3f} ms ({})\n", on_off(!report.hcom_parallel),
                            ms(turned), change(turned, report.step_time()));
}

/// What is known of the links' speeds, those that nobody has measured first.
std::string links_text(const RunReport& report) {
  std::vector<std::string> assumed;
  std::vector<std::string> measured;
  std::vector<std::string> calibrated;
  std::vector<std::string> set;
  for (const study::LinkSource& link : report.link_sources) {
    if (link.source == study::set_by_user) {
      set.push_back(link.speed);
      continue;
    }
    auto& group = link.source.starts_with("measured")     ? measured
                  : link.source.starts_with("calibrated") ? calibrated
                                                          : assumed;
    group.push_back(fmt::format("{} [{}]", link.speed, link.source));
  }
  std::string text;
  if (!assumed.empty()) text += fmt::format("  Assumed, not measured: {}.", fmt::join(assumed, ", "));
  if (!measured.empty()) text += fmt::format("  Measured by the vendor: {}.", fmt::join(measured, ", "));
  if (!calibrated.empty()) text += fmt::format("  Calibrated: {}.", fmt::join(calibrated, ", "));
  if (!set.empty()) text += fmt::format("  Set by --set: {}.", fmt::join(set, ", "));
  return text;
}

std::string busiest_links(const RunReport& report) {
  if (!report.lists_links || !report.links.has_value()) return {};
  return link_report_text(*report.links, fmt::format("Busiest links of the last step of rank {}", report.rank));
}

std::string contention_text(BytesPerSecond shared_hbm) {
  return shared_hbm > 0 ? fmt::format("contention on ({:g} GB/s shared)", shared_hbm / giga) : "contention off";
}

std::string foot(const RunReport& report) {
  constexpr double gibibyte = 0x1p30;
  const study::RunResult::Fullest fullest = report.fullest();
  std::string text =
      fmt::format("HBM peak {:.2f} of {:.2f} GiB {}, {}.", static_cast<double>(fullest.hbm.peak()) / gibibyte,
                  static_cast<double>(report.hbm_capacity) / gibibyte,
                  fullest.all_alike ? "per NPU" : fmt::format("on rank {}, which needs most", fullest.rank),
                  contention_text(report.shared_hbm));
  text += links_text(report);
  text +=
      fmt::format("\nNetwork: {}, all {} transfers completed.", report.network, with_thousands(report.step.transfers));
  if (!report.step.folded.empty()) {
    text += fmt::format("  Folded: {}.", hccl::folded_text(report.step.folded, report.npus));
  }
  if (!report.timeline.empty()) text += fmt::format("  Timeline: {}", report.timeline);
  text += '\n';
  if (report.comm_reuse.has_value()) text += comm_reuse_text(*report.comm_reuse);
  if (report.goodput.has_value()) text += goodput_text(*report.goodput, report.npus);
  text += unmodelled_line(report.unmodelled);
  for (const std::string& note : report.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

}  // namespace

std::string RunReport::gradients_text() const {
  const bool told = amp.find("gradients") != std::string::npos;
  return fmt::format("{} {}", told ? "sent in" : "gradients", program->gradient_type_text());
}

std::string RunReport::batch_text() const {
  if (!parallel.has_value() || parallel->plain) {
    return fmt::format("{} per NPU ({} global)", program->batch, std::uint64_t{program->batch} * npus);
  }
  const std::uint64_t samples = std::uint64_t{parallel->micro_batch} * batch.micro_batches;
  return fmt::format("{} per replica ({} global) in {} micro-batch{} of {}", samples, samples * parallel->data,
                     batch.micro_batches, batch.micro_batches == 1 ? "" : "es", parallel->micro_batch);
}

std::string RunReport::split_text() const {
  return parallel.has_value() && !parallel->fusion.empty() ? "fusion " + parallel->fusion : "split " + split;
}

std::string RunReport::segment_list() const {
  std::vector<hccl::Segment> segments;
  for (const hccl::SegmentFigures& segment : view.segments) segments.push_back(segment.segment);
  if (segments.size() <= most_rows) return to_string(segments);
  const std::string last = to_string(std::vector{segments.back()});
  segments.resize(most_rows - 1);
  return to_string(segments) + " .. " + last;
}

std::string timed_text(const RunReport& report) {
  std::string text = mapping_text(report.mapping) + (report.profile.has_value() ? profile_text(*report.profile) : "");
  if (report.parallel.has_value() && !report.parallel->plain) {
    return text + parallel_head(report) + settings_line(report) + step_line(report) + fault_line(report) +
           start_up_line(report) + input_line(report) + busy_line(report) + host_lines(report) + parallel_text(report) +
           checks_lines(report) + compression_text(report) + fusions_line(report) +
           explanation_text(report.explanation) + busiest_links(report) + foot(report);
  }
  text += head(report) + settings_line(report) + step_line(report) + fault_line(report) + parallel_line(report) +
          start_up_line(report) + input_line(report) + busy_line(report) + host_lines(report) + trace_line(report);
  for (const std::string& line : iteration_bar(report.view.iterations.back())) text += "  " + line + '\n';
  if (report.npus > 1) text += segment_table(report) + tail_line(report);
  text += checks_lines(report) + compression_text(report);
  if (report.npus > 1) text += advice_line(report);
  text += explanation_text(report.explanation);
  text += memory_text(report) + busiest_links(report);
  return text + foot(report);
}

std::string text_report(const RunReport& report) {
  std::string text = timed_text(report);
  if (report.numerics.has_value()) text += numerics_text(*report.numerics);
  if (report.baseline.has_value()) text += baseline_text(*report.baseline);
  return text;
}

}  // namespace hcclsim::cli
