#include "cli/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/further_simulations.hpp"
#include "cli/iteration.hpp"
#include "cli/loaded_run.hpp"
#include "cli/numerics_run.hpp"
#include "cli/output.hpp"
#include "cli/platform_path.hpp"
#include "cli/run_explanation.hpp"
#include "cli/run_options.hpp"
#include "cli/run_report.hpp"
#include "cli/timeline.hpp"

namespace hcclsim::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* footer =
    "Examples:\n"
    "  hcclsim run                                          ResNet50 on eight 910A, default split\n"
    "  hcclsim run --hcom-parallel on --split-by-size 80,20 overlap, another split\n"
    "  hcclsim run --platform atlas800t-a2-x2 --batch 256   two servers of eight 910B\n"
    "  hcclsim run --trace timeline.json                    for ui.perfetto.dev\n"
    "  hcclsim run --gradients profile.csv --format json    a measured profile instead of a model\n"
    "  hcclsim run --numerics --iterations 10               real gradients, loss and accuracy\n"
    "  hcclsim run --explain                                why these algorithms, and what others cost\n"
    "  hcclsim run --format json --advice                   with comparisons and advice";

/// The timeline files that --trace asks for: one, or one per rank in a folder.
struct Timeline {
  std::vector<Rank> ranks;
  OutputFile file;
};

std::vector<Rank> traced_ranks(const RunOptions& options, Rank npus) {
  if (!options.trace_all_ranks) {
    return options.trace_ranks.empty() ? std::vector<Rank>{options.rank} : options.trace_ranks;
  }
  std::vector<Rank> all(npus);
  for (Rank rank = 0; rank < npus; ++rank) all[rank] = rank;
  return all;
}

std::vector<Timeline> open_timelines(const RunOptions& options, Rank npus) {
  std::vector<Timeline> timelines;
  if (options.trace.empty()) return timelines;
  const std::vector<Rank> ranks = traced_ranks(options, npus);
  if (!options.trace.ends_with('/') && !fs::is_directory(options.trace)) {
    timelines.push_back({ranks, OutputFile(options.trace)});
    return timelines;
  }
  for (const Rank rank : ranks) {
    const fs::path path = fs::path(options.trace) / fmt::format("timeline_rank_{}.json", rank);
    timelines.push_back({{rank}, OutputFile(path.string(), OutputFile::Folders::are_made)});
  }
  return timelines;
}

std::string split_name(const RunOptions& options) {
  if (options.split_by_size.has_value()) return fmt::format("by size {}", fmt::join(*options.split_by_size, ","));
  if (options.split_by_idx.has_value()) return fmt::format("by index {}", fmt::join(*options.split_by_idx, ","));
  return options.split == "default" ? "default 96.54/3.46" : options.split;
}

/// Names of the kinds of links as the vendor writes them.
std::string_view title_of(sim::LinkKind kind) {
  constexpr std::array<std::string_view, 6> titles{"HCCS", "PCIe", "SIO", "UB", "RoCE", "other"};
  return titles.at(static_cast<std::size_t>(kind));
}

/// "HCCS 14 GB/s (10..19.3)": used speed and range.
std::string speed_of(const sim::Link& link) {
  const std::string range = fmt::format("({:g}..{:g})", link.low / giga, link.high / giga);
  if (link.read == link.write) return fmt::format("{} {:g} GB/s {}", title_of(link.kind), link.bandwidth / giga, range);
  return fmt::format("{} read {:g} write {:g} GB/s {}", title_of(link.kind), link.read / giga, link.write / giga,
                     range);
}

/// Speeds of the kinds of links that the run uses, with the platform's word on where they come from. Routes inside the
/// first server and to the next one stand for all.
std::vector<LinkSource> link_sources(sim::Cluster& cluster, Rank npus) {
  std::map<sim::LinkKind, LinkSource> kinds;
  for (Rank rank = 1; rank < npus; ++rank) {
    const bool next_server = cluster.npu(rank).server != cluster.npu(0).server;
    for (const sim::LinkId id : cluster.route(0, rank).links) {
      const sim::Link& link = cluster.links()[id];
      if (link.kind == sim::LinkKind::other || kinds.contains(link.kind)) continue;
      const auto source = cluster.property(fmt::format("link.{}.source", name_of(link.kind)));
      kinds[link.kind] = {speed_of(link), source.value_or("platform file")};
    }
    if (next_server) break;
  }
  std::vector<LinkSource> sources;
  for (auto& [kind, source] : kinds) sources.push_back(std::move(source));
  return sources;
}

std::string write_report(const RunReport& report, OutputFormat format) {
  switch (format) {
    case OutputFormat::text:
      return text_report(report);
    case OutputFormat::json:
      return json_report(report);
    case OutputFormat::csv:
      return csv_report(report);
  }
  internal_error("unknown output format {}", static_cast<int>(format));
}

/// Variables of HCCL that change what a run does. All of its reductions are deterministic, as HCCL_DETERMINISTIC asks.
constexpr std::array<std::string_view, 4> modelled_variables{"HCCL_ALGO", "HCCL_BUFFSIZE", "HCCL_DETERMINISTIC",
                                                             "HCCL_EXEC_TIMEOUT"};

/// Loads everything, simulates, prints and writes. Runs in a child. `session` is there with --numerics.
void simulate_run(const RunOptions& options, const std::string& platform, NumericsSession* session) {
  LoadedRun run(options, platform);
  const Rank npus = run.npus;
  RunReport report;
  report.workload = run.workload;

  std::vector<Timeline> timelines = open_timelines(options, npus);
  std::vector<OutputFile> step_trace;
  if (!options.step_trace.empty()) step_trace.emplace_back(options.step_trace);

  NumericsFiles numerics_files(options.numerics);

  const Setting setting{run.cluster, report.workload, run.soc, run.costs, run.training};
  hccl::TrainingOptions traced = run.training;
  if (!timelines.empty()) traced.traced = traced_ranks(options, npus);
  traced.trace_tasks = !timelines.empty();
  std::optional<FurtherSimulations> further;
  if (options.format == OutputFormat::text || options.advice) further.emplace(setting);
  std::optional<RunExplanation> explanation;
  if (options.explain) explanation.emplace(setting);
  report.result = simulate_training(run.cluster, report.workload, run.soc, run.costs, traced);
  if (further.has_value()) further->finish(report);
  if (explanation.has_value()) explanation->finish(report);

  report.model = run.model;
  if (run.profile.has_value()) report.profile.emplace(*run.profile, study::simulated_phases(report.result));
  report.platform = fs::path(platform).filename().string();
  report.rank_table = options.rank_table;
  report.npu = run.soc.name;
  report.npus = npus;
  report.amp = models::name_of(options.amp);
  report.framework = options.mindspore ? "mindspore" : "tf";
  report.hcom_parallel = options.hcom_parallel;
  report.launch = name_of(options.launch);
  report.split = split_name(options);
  report.loss_scale = options.loss_scale;
  report.clip_norm = options.clip_norm;
  report.network = name_of(run.training.network);
  report.hbm_capacity = run.soc.hbm_bytes;
  report.iterations = iteration_points(report.result.trace, options.rank, report.workload);
  if (session != nullptr) {
    report.numerics = run_numerics(options,
                                   {.npus = npus,
                                    .soc = run.soc,
                                    .workload = report.workload,
                                    .segments = run.training.segments,
                                    .schedules = report.result.schedules.allreduces,
                                    .iterations = report.iterations},
                                   *session);
    numerics_files.plot(*report.numerics, fmt::format("Loss of {} on {} NPUs", report.workload.title, npus));
  }
  report.link_sources = link_sources(run.cluster, npus);
  report.unmodelled = unmodelled(options.hccl_settings, modelled_variables);
  report.notes = std::move(run.notes);
  report.timeline = options.trace;
  for (Timeline& timeline : timelines) {
    write_timeline(report.result.trace, timeline.ranks, [&](std::string_view text) { timeline.file.write(text); });
  }
  for (OutputFile& file : step_trace) file.write(step_trace_csv(report.iterations));
  // Files appear when all has succeeded, printing included.
  print(write_report(report, options.format));
  for (Timeline& timeline : timelines) timeline.file.commit();
  for (OutputFile& file : step_trace) file.commit();
  numerics_files.commit();
  if (report.numerics.has_value()) require_exact(*report.numerics);
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Simulate data-parallel training with gradient splits");
  command->footer(footer);
  add_run_options(*command, *options);
  command->callback([command, options] {
    finish_run_options(*command, *options);
    const std::string platform = find_platform(options->platform);
    std::optional<NumericsSession> session;
    if (options->numerics.enabled) session.emplace();
    static_cast<void>(run_in_child([&] {
      simulate_run(*options, platform, session.has_value() ? &*session : nullptr);
      return std::string();
    }));
    if (session.has_value() && session->interruption.signal() != 0) throw Interrupted(session->interruption.signal());
  });
}

}  // namespace hcclsim::cli
