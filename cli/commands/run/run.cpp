#include "cli/commands/commands.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/commands/run/run_concurrent.hpp"
#include "cli/commands/run/run_emit.hpp"
#include "cli/commands/run/run_ps.hpp"
#include "cli/draw/svg_chart.hpp"
#include "cli/draw/timelines.hpp"
#include "cli/html/pages.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/training/concurrent_options.hpp"
#include "cli/options/training/run_options.hpp"
#include "cli/print/baseline.hpp"
#include "cli/print/failure.hpp"
#include "cli/print/run/goodput_report.hpp"
#include "cli/print/run/iteration.hpp"
#include "cli/print/run/numerics_report.hpp"
#include "cli/print/run/run_report.hpp"
#include "cli/profiler/profile_folder.hpp"
#include "cli/terminal/interruption.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/ticker.hpp"
#include "study/communication/replay/write_plan.hpp"
#include "study/run/experiment/strategies.hpp"
#include "study/run/numerics/numerics.hpp"
#include "study/run/run.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* footer =
    "Examples:\n"
    "  hcclsim run                                           ResNet50 on eight 910A, default split\n"
    "  hcclsim run --hcom-parallel on --split-by-size 80,20  overlap, another split\n"
    "  hcclsim run --platform atlas800t-a2-x2 --batch 256    two servers of eight 910B\n"
    "  hcclsim run --platform atlas800t-a2 --model gpt2-small --batch 2 --tp 4   operators shared by four NPUs each\n"
    "  hcclsim run --trace timeline.json                     for ui.perfetto.dev\n"
    "  hcclsim run --trace-ranks all --trace a.perfetto-trace  the same of all ranks, in less space\n"
    "  hcclsim run --profile-output profile                  files of MindStudio's profilers, of all ranks\n"
    "  hcclsim run --gradients profile.csv --format json     a measured profile instead of a model\n"
    "  hcclsim run --numerics --iterations 10                real gradients, loss and accuracy\n"
    "  hcclsim run --explain                                 why these algorithms, and what others cost\n"
    "  hcclsim run --links 8                                 busiest links, and what for\n"
    "  hcclsim run --format json --advice                    with comparisons and advice\n"
    "  hcclsim run --mode ps --servers 2 --npus 6            parameter servers on NPUs 6 and 7\n"
    "  hcclsim run --baseline stored.json --junit run.xml    against a run that was stored, for CI\n"
    "  hcclsim run --concurrent a.toml --concurrent b.toml   jobs side by side, each on its npus-list";

std::vector<Rank> traced_ranks(const RunOptions& options, Rank npus) {
  const TimelineOptions& timeline = options.timeline;
  const std::vector<Rank> ranks =
      ranks_of_option("--trace-ranks", timeline.trace_ranks, timeline.trace_all_ranks, npus);
  return ranks.empty() ? std::vector<Rank>{options.spec.simulation.rank} : ranks;
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

/// The files that training writes. They are opened before the simulation, so that a path that cannot be written is
/// known at once.
class NumericsFiles {
 public:
  /// Throws Error(bad_input, "output").
  explicit NumericsFiles(const NumericsOptions& options) {
    if (!options.loss_plot.empty()) loss_plot_.emplace_back(options.loss_plot);
    // Opened and dropped: checkpoints are written by the trainer, more than once, and gradients too.
    for (const std::string& file : {options.spec.save, options.spec.save_gradients}) {
      if (!file.empty()) static_cast<void>(OutputFile(file));
    }
  }

  /// Writes the chart of the loss, if one is wanted; it appears with commit().
  void plot(const study::NumericsResult& result, std::string title) {
    if (loss_plot_.empty()) return;
    ChartSeries loss{"loss", {}};
    ChartSeries plain{"without compression", {}};
    for (const study::NumericsIteration& iteration : result.iterations) {
      const auto number = static_cast<double>(iteration.iteration);
      loss.points.emplace_back(number, iteration.loss);
      if (iteration.plain_loss.has_value()) plain.points.emplace_back(number, *iteration.plain_loss);
    }
    std::vector<ChartSeries> series{std::move(loss)};
    if (!plain.points.empty()) series.push_back(std::move(plain));
    if (result.diverged.has_value()) title += fmt::format(", diverged in iteration {}", result.diverged->iteration);
    loss_plot_.front().write(svg_line_chart({.title = std::move(title),
                                             .x_label = "iteration",
                                             .y_label = "loss",
                                             .series = std::move(series),
                                             .whole_x = true,
                                             .marks_not_finite = true}));
  }

  void commit() {
    for (OutputFile& file : loss_plot_) file.commit();
  }

 private:
  std::vector<OutputFile> loss_plot_;  // one or none
};

std::string what_is_trained(const study::RunSpec& spec) {
  return spec.gradients_file.empty() ? spec.model.name : spec.gradients_file;
}

/// Holds the terminal and the signals, and is made before a child that simulates. Until training begins, a signal ends
/// the command.
struct Session {
  Progress progress;
  Interruption interruption{Interruption::Begin::when_told};
};

/// --numerics: trains, prints each step when it is done (but for JSON, which is printed at the end), with a line that
/// tells how far it is.
study::Training compute(const RunOptions& options, const study::Experiment& experiment, study::TrainingClock& clock,
                        Session& session, RunReport& report) {
  Progress& progress = session.progress;
  const study::TrainingWatch watch{
      .begin =
          [&](const study::NumericsResult& numerics) {
            if (options.format == OutputFormat::text) print(timed_text(report) + numerics_begin_text(numerics));
            if (options.format == OutputFormat::csv) print(csv_titles(*report.numerics));
            session.interruption.begin();
            progress.start();
          },
      .step =
          [&](const study::NumericsIteration& step, std::size_t done, std::size_t total) {
            const std::string row = options.format == OutputFormat::text  ? step_text(step, done, total)
                                    : options.format == OutputFormat::csv ? csv_row(*report.numerics, step)
                                                                          : "";
            if (!row.empty()) {
              progress.erase();
              print(row);
            }
            progress.update([&](double seconds) { return progress_line(done, total, step.loss, seconds); });
          },
      .end = [&] { progress.erase(); },
      .stop = [&] { return session.interruption.signal() != 0; }};
  return study::compute_numerics(experiment, report.step, report.start_up_plan(), clock, watch,
                                 report.numerics.emplace());
}

std::string effort_text(const study::Effort& effort) {
  return fmt::format("Computed in {:.2f} s with {} workers, peak memory {:.2f} GB\n", effort.seconds, effort.workers,
                     static_cast<double>(effort.peak_memory) / giga);
}

/// What of the report has not been printed while it trained.
std::string rest_of_report(const RunReport& report, OutputFormat format) {
  if (!report.numerics.has_value() || format == OutputFormat::json) return write_report(report, format);
  if (format == OutputFormat::csv) return {};
  std::string text = numerics_end_text(*report.numerics);
  if (report.baseline.has_value()) text += baseline_text(*report.baseline);
  return text;
}

/// A page shows some links in any case, and their loads in intervals: about as many as a screen can show.
study::LinkWishes link_wishes(const RunOptions& options) {
  constexpr std::size_t usual = 16;
  // Perfetto shows loads over time.
  const bool over_time = options.timeline.format() == TimelineFormat::perfetto && !options.timeline.trace.empty();
  constexpr std::size_t intervals = 400;
  if (options.html.path.empty()) return {.most = options.links, .intervals = over_time ? intervals : 1};
  return {.most = options.links > 0 ? options.links : usual, .intervals = intervals};
}

/// Returns the ranks of all stages that have the same place in their stage as these ranks: their partners in messages.
std::vector<Rank> with_other_stages(const std::vector<Rank>& ranks, const study::Experiment& experiment) {
  const Rank devices = experiment.training.step.stage_ranks();
  std::vector<Rank> all;
  for (const Rank rank : ranks) {
    for (Rank other = rank % devices; other < experiment.npus; other += devices) all.push_back(other);
  }
  return all;
}

/// Simulates, prints and writes. `session` is there with --numerics; `work` counts steps, unless null.
void run_and_print(const RunOptions& options, const BaselineOptions& regression_options, study::Experiment& experiment,
                   Session* session, std::shared_ptr<SharedWork> work) {
  const Rank npus = experiment.npus;
  Timelines timelines(options.timeline, traced_ranks(options, npus));
  const ProfileOptions& profile = options.timeline.profile;
  std::optional<ProfileFolder> profile_folder;
  std::vector<Rank> profiled;
  if (!profile.folder.empty()) {
    profiled = ranks_of_option("--profile-ranks", profile.ranks, profile.all_ranks, npus);
    profile_folder.emplace(profile);
  }
  std::vector<OutputFile> step_trace;
  if (!options.step_trace.empty()) step_trace.emplace_back(options.step_trace);
  std::vector<OutputFile> gradients;
  if (!options.gradients_out.empty()) gradients.emplace_back(options.gradients_out);
  std::vector<OutputFile> html;
  if (!options.html.path.empty()) html.emplace_back(options.html.path);
  NumericsFiles numerics_files(options.numerics);
  RegressionCheck regression(regression_options);

  study::RunWishes wishes{.uncertainty = options.uncertainty && options.format != OutputFormat::csv,
                          .explained_uncertainty = options.explain_uncertainty,
                          .compared = options.format == OutputFormat::text || options.advice || !html.empty(),
                          .compared_at_any_size = options.advice,
                          .hook_compared = options.format != OutputFormat::csv || !html.empty(),
                          .explained = options.explain,
                          .links = link_wishes(options),
                          .by_rank = options.format == OutputFormat::json || !html.empty() ||
                                     !regression_options.file.empty() || !regression_options.junit.empty(),
                          .routing_seeds = options.format == OutputFormat::csv ? 0 : options.routing_seeds,
                          .trace_points = {options.fp_point, options.bp_point},
                          .seeds_are_given = options.seeds_are_given};
  wishes.gradient_dates = !options.gradients_out.empty();
  wishes.work = std::move(work);
  wishes.traced = timelines.kept_ranks();
  wishes.stream = timelines.stream();
  const study::PlanTraceFiles traces{options.chakra_output, options.goal_output};
  study::require_writable(traces, experiment.training);
  const std::vector<Rank> shown = html.empty() ? std::vector<Rank>() : ranks_of_page(options, npus);
  wishes.traced.insert(wishes.traced.end(), shown.begin(), shown.end());
  wishes.tasks = !wishes.traced.empty() || profile.level == ProfileLevel::level1;
  const std::vector<Rank> messaging = with_other_stages(profiled, experiment);
  wishes.traced.insert(wishes.traced.end(), messaging.begin(), messaging.end());
  std::optional<study::TrainingClock> clock;
  if (session != nullptr)
    clock.emplace(experiment, options.spec.simulation.iterations, past_of(*options.spec.numerics));
  study::exchange_strategies(options.spec, experiment);
  RunReport report(simulate_run(experiment, std::move(wishes)), options);
  report.timeline = options.timeline.trace;
  std::optional<study::Training> training;
  if (session != nullptr) training = compute(options, experiment, *clock, *session, report);
  timelines.write(report.step.plan, report.step.trace, options.spec.faults,
                  report.links.has_value() ? &*report.links : nullptr, report.view.fp_start);
  if (profile_folder.has_value()) {
    profile_folder->write(report.step, profiled, experiment.soc.generation,
                          [&](Rank rank) -> const device::HbmAccount& {
                            return experiment.hbm_of_stages.at(rank / experiment.training.step.stage_ranks());
                          });
  }
  study::write_plan(traces, report.step.plan, experiment);
  for (OutputFile& file : step_trace) file.write(step_trace_csv(report.view.iterations));
  for (OutputFile& file : gradients) file.write(gradients_csv(report));
  for (OutputFile& file : html) file.write(run_page(report, shown, options.html));
  regression.compare(report);
  regression.write_junit(report);
  // Files appear when all has succeeded, printing included.
  print(rest_of_report(report, options.format));
  if (training.has_value()) print_apart(effort_text(training->effort));
  if (options.format == OutputFormat::csv) {
    print_remarks_apart(report.unmodelled, report.notes);
    if (report.goodput.has_value()) print_apart(goodput_text(*report.goodput, report.npus));
  }
  if (report.numerics.has_value()) {
    numerics_files.plot(*report.numerics, fmt::format("Loss of {} on {} NPUs", report.program->title, npus));
  }
  timelines.commit();
  if (profile_folder.has_value()) profile_folder->commit();
  for (OutputFile& file : step_trace) file.commit();
  for (OutputFile& file : gradients) file.commit();
  for (OutputFile& file : html) file.commit();
  numerics_files.commit();
  regression.commit();
  if (training.has_value() && training->failure.has_value()) throw Error(*training->failure);
  if (report.numerics.has_value()) study::require_exact(*report.numerics);
  require_baseline(report.baseline);
}

}  // namespace

namespace {

void add_emit_option(Command& command, std::optional<study::LaunchProgram>& program) {
  command
      .add("--emit",
           one_of({"megatron", "mindformers", "mindspeed-fsdp2"},
                  [&program](const std::string& word) { program = study::parse_launch_program(word); }),
           "Print the run as a script or YAML of this program, which --megatron or --mindformers reads as the same "
           "step, and do not simulate")
      .not_in_files();
}

}  // namespace

void add_run_command(Command& app) {
  app.add_command("run", "Simulate training: how long a step takes, and why", [](Command& command) {
    command.footer(footer);
    set_up_run(command, nullptr);
  });
}

void set_up_run(Command& command, const std::shared_ptr<const HtmlReport>& html) {
  const auto options = std::make_shared<RunOptions>();
  const auto regression = std::make_shared<BaselineOptions>();
  add_run_options(command, *options);
  add_baseline_options(command, *regression);
  const auto concurrent = std::make_shared<ConcurrentOptions>();
  add_concurrent_options(command, *options, *concurrent);
  const auto emitted = std::make_shared<std::optional<study::LaunchProgram>>();
  if (html == nullptr) add_emit_option(command, *emitted);
  command.on_run([&command, options, regression, concurrent, emitted, html] {
    if (html != nullptr) options->html = *html;
    std::optional<Session> session;
    with_junit(command, *regression, "run", [&] {
      if (concurrent->enabled()) {
        run_concurrent(command, *options, *concurrent);
        return;
      }
      finish_run_options(command, *options);
      require_no_job(command);
      check_baseline_options(command, *regression);
      options->spec.platform.file = options->platform;
      if (emitted->has_value()) {
        print(emitted_launch_file(command, *options, **emitted));
        return;
      }
      std::optional<Ticker> ticker;  // real numbers have a line of their own
      if (!options->numerics.enabled) ticker.emplace(what_is_trained(options->spec), "steps");
      if (options->ps.enabled) {
        run_parameter_servers(*options);
        return;
      }
      if (options->numerics.enabled) session.emplace();
      // With real numbers the report is printed all the same, and says why training has ended.
      with_failure(options->format == OutputFormat::json && !session.has_value(), [&] {
        study::on_experiment(options->spec, [&](study::Experiment& experiment) {
          run_and_print(*options, *regression, experiment, session.has_value() ? &*session : nullptr,
                        ticker.has_value() ? ticker->work() : nullptr);
        });
      });
    });
    if (session.has_value() && session->interruption.signal() != 0) throw Interrupted(session->interruption.signal());
  });
}

}  // namespace hcclsim::cli
