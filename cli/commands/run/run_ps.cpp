#include "cli/commands/run/run_ps.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/draw/ps_timeline.hpp"
#include "cli/draw/svg_chart.hpp"
#include "cli/html/pages.hpp"
#include "cli/print/failure.hpp"
#include "cli/print/run/ps_report.hpp"
#include "cli/terminal/output.hpp"
#include "study/run/run.hpp"

namespace hcclsim::cli {
namespace {

/// Losses over simulated time of every worker's steps, and over the same steps by allreduce if their times are known.
std::string loss_chart(const study::PsResult& result) {
  ChartSeries servers{"parameter servers", {}};
  for (const study::WorkersStep& one : study::steps_of_workers(result.numerics->steps)) {
    servers.points.emplace_back(static_cast<double>(one.step + 1), one.loss);
  }
  ChartSeries allreduce{"allreduce", {}};
  for (std::size_t step = 0; step < result.numerics->allreduce_losses.size(); ++step) {
    allreduce.points.emplace_back(static_cast<double>(step + 1), result.numerics->allreduce_losses[step]);
  }
  std::vector<ChartSeries> series{std::move(servers)};
  if (!allreduce.points.empty()) series.push_back(std::move(allreduce));
  return svg_line_chart(
      {.title = fmt::format("Loss of {} on {} workers and {} servers", result.title, result.workers, result.servers),
       .x_label = "step",
       .y_label = "loss",
       .series = std::move(series),
       .whole_x = true,
       .marks_not_finite = true});
}

}  // namespace

void run_parameter_servers(const RunOptions& options) {
  options.timeline.require_chrome("--mode ps");
  study::on_ps_experiment(options.spec, options.ps.spec, [&](study::PsExperiment& experiment) {
    std::optional<OutputFile> plot;
    if (!options.numerics.loss_plot.empty()) plot.emplace(options.numerics.loss_plot);
    std::optional<OutputFile> timeline;
    if (!options.timeline.trace.empty()) timeline.emplace(options.timeline.trace);
    std::optional<OutputFile> page;
    if (!options.html.path.empty()) page.emplace(options.html.path);
    const study::PsResult result = with_failure(options.format == OutputFormat::json, [&] {
      return simulate_ps(experiment, options.ps.spec, options.format != OutputFormat::csv);
    });
    switch (options.format) {
      case OutputFormat::text:
        print(ps_text(result));
        break;
      case OutputFormat::json:
        print(ps_json(result));
        break;
      case OutputFormat::csv:
        print(ps_csv(result));
        break;
    }
    if (plot.has_value()) {
      plot->write(loss_chart(result));
      plot->commit();
    }
    if (timeline.has_value()) {
      timeline->write(ps_timeline(result));
      timeline->commit();
    }
    if (page.has_value()) {
      page->write(ps_page(result, options.html));
      page->commit();
    }
    if (!result.outcome.failure.empty()) simulated_failure("ps", "{}", result.outcome.failure);
    if (result.numerics.has_value()) require_finite(result.numerics->diverged);
  });
}

}  // namespace hcclsim::cli
