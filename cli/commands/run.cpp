#include "cli/commands/run.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/baseline.hpp"
#include "cli/draw/timeline.hpp"
#include "cli/experiment.hpp"
#include "cli/html/run_page.hpp"
#include "cli/numerics_run.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/platform_path.hpp"
#include "cli/options/run_options.hpp"
#include "cli/print/iteration.hpp"
#include "cli/print/output.hpp"
#include "cli/print/run_report.hpp"
#include "cli/run_simulation.hpp"

namespace hcclsim::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* footer =
    "Examples:\n"
    "  hcclsim run                                           ResNet50 on eight 910A, default split\n"
    "  hcclsim run --hcom-parallel on --split-by-size 80,20  overlap, another split\n"
    "  hcclsim run --platform atlas800t-a2-x2 --batch 256    two servers of eight 910B\n"
    "  hcclsim run --trace timeline.json                     for ui.perfetto.dev\n"
    "  hcclsim run --gradients profile.csv --format json     a measured profile instead of a model\n"
    "  hcclsim run --numerics --iterations 10                real gradients, loss and accuracy\n"
    "  hcclsim run --explain                                 why these algorithms, and what others cost\n"
    "  hcclsim run --format json --advice                    with comparisons and advice\n"
    "  hcclsim run --baseline stored.json --junit run.xml    against a run that was stored, for CI";

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

/// Loads everything, simulates, prints and writes. Runs in a child. `session` is there with --numerics.
void run_and_print(const RunOptions& options, const BaselineOptions& regression_options, const std::string& platform,
                   NumericsSession* session) {
  sim::Cluster cluster(platform, options.platform_edits);
  Experiment run(options, cluster);
  std::vector<Timeline> timelines = open_timelines(options, run.npus);
  std::vector<OutputFile> step_trace;
  if (!options.step_trace.empty()) step_trace.emplace_back(options.step_trace);
  std::vector<OutputFile> html;
  if (!options.html.path.empty()) html.emplace_back(options.html.path);
  NumericsFiles numerics_files(options.numerics);
  RegressionCheck regression(regression_options);

  std::vector<Rank> traced;
  if (!timelines.empty()) traced = traced_ranks(options, run.npus);
  const std::vector<Rank> shown = html.empty() ? std::vector<Rank>() : ranks_of_page(options, run.npus);
  traced.insert(traced.end(), shown.begin(), shown.end());
  RunReport report = simulate_run(options, run, std::move(traced));
  if (session != nullptr) {
    compute_numerics(options, run, *session, report);
    numerics_files.plot(*report.numerics, fmt::format("Loss of {} on {} NPUs", report.program->title, run.npus));
  }
  report.timeline = options.trace;
  for (Timeline& timeline : timelines) {
    write_timeline(report.step.trace, timeline.ranks, [&](std::string_view text) { timeline.file.write(text); });
  }
  for (OutputFile& file : step_trace) file.write(step_trace_csv(report.view.iterations));
  for (OutputFile& file : html) file.write(run_page(report, shown, options.html));
  regression.compare(report);
  regression.write_junit(report);
  // Files appear when all has succeeded, printing included.
  print(write_report(report, options.format));
  if (options.format == OutputFormat::csv) print_remarks_apart(report.unmodelled, report.notes);
  for (Timeline& timeline : timelines) timeline.file.commit();
  for (OutputFile& file : step_trace) file.commit();
  for (OutputFile& file : html) file.commit();
  numerics_files.commit();
  regression.commit();
  if (report.numerics.has_value()) require_exact(*report.numerics);
  require_baseline(report);
}

}  // namespace

void add_run_command(Command& app) {
  app.add_command("run", "Simulate data-parallel training with gradient splits", [](Command& command) {
    command.footer(footer);
    set_up_run(command, nullptr);
  });
}

void set_up_run(Command& command, const std::shared_ptr<const HtmlReport>& html) {
  const auto options = std::make_shared<RunOptions>();
  const auto regression = std::make_shared<BaselineOptions>();
  add_run_options(command, *options);
  add_baseline_options(command, *regression);
  command.on_run([&command, options, regression, html] {
    if (html != nullptr) options->html = *html;
    std::optional<Interruption> interruption;
    try {
      finish_run_options(command, *options);
      check_baseline_options(command, *regression);
      const std::string platform = find_platform(options->platform);
      std::optional<Progress> progress;
      std::optional<NumericsSession> session;
      if (options->numerics.enabled) {
        session.emplace(NumericsSession{progress.emplace(), interruption.emplace()});
      }
      static_cast<void>(run_in_child([&] {
        run_and_print(*options, *regression, platform, session.has_value() ? &*session : nullptr);
        return std::string();
      }));
    } catch (const Error& error) {
      write_junit_failure(command, *regression, error);
      throw;
    }
    if (interruption.has_value() && interruption->signal() != 0) throw Interrupted(interruption->signal());
  });
}

}  // namespace hcclsim::cli
