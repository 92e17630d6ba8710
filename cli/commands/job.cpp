#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/commands/commands.hpp"
#include "cli/draw/svg_chart.hpp"
#include "cli/html/pages.hpp"
#include "cli/options/job_options.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/print/job/job_report.hpp"
#include "cli/terminal/output.hpp"
#include "study/jobs/job/job.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* job_footer =
    "Exit status 3 if the job does not succeed. --framework is mindspore unless given.\n"
    "Examples:\n"
    "  hcclsim job job.yaml --steps 500                      ResNet50 on the NPUs of its workers\n"
    "  hcclsim job job.yaml --platform atlas800t-a2-x2 --packing spread\n"
    "  hcclsim job ps.yaml --step-time 12ms --format json    parameter servers\n"
    "  hcclsim job elastic.yaml --fail 'worker-1 exit 137 at 1m' --checkpoint-every 100\n"
    "  hcclsim job job.yaml --model lenet --steps 50 --numerics    real gradients, loss and accuracy";

std::string report_in(JobFormat format, const study::JobResult& result) {
  switch (format) {
    case JobFormat::text:
      return job_text(result);
    case JobFormat::json:
      return job_json(result);
    case JobFormat::yaml:
      return job_yaml(result);
  }
  internal_error("unknown output format {}", static_cast<int>(format));
}

/// Losses over simulated time, a line for each run of steps without a break: of all workers together, or of each that
/// trains by itself.
std::string loss_chart(const study::JobResult& result) {
  constexpr std::size_t most_series = 8;
  std::vector<ChartSeries> series;
  std::map<std::string, std::uint32_t> runs_of;
  for (std::size_t run = 0; run < result.outcome.runs.size() && series.size() < most_series; ++run) {
    if (result.numerics->runs[run].empty()) continue;
    const std::string& worker = result.outcome.runs[run].worker;
    std::string name = worker.empty() ? "all workers" : worker;
    if (const std::uint32_t number = ++runs_of[name]; number > 1) name += fmt::format(", run {}", number);
    ChartSeries& line = series.emplace_back(ChartSeries{std::move(name), {}});
    for (const study::JobStep& step : result.numerics->runs[run]) line.points.emplace_back(step.end, step.loss);
  }
  const std::string title = fmt::format("Loss of MSJob {}", result.job.name);
  return svg_line_chart(
      {.title = title, .x_label = "s", .y_label = "loss", .series = std::move(series), .marks_not_finite = true});
}

}  // namespace

void add_job_command(Command& app) {
  app.add_command("job", "An MSJob of Kubernetes: its pods, its training, its end", [](Command& command) {
    command.footer(job_footer);
    set_up_job(command, nullptr);
  });
}

void set_up_job(Command& command, const std::shared_ptr<const HtmlReport>& html) {
  const auto options = std::make_shared<JobOptions>();
  add_job_options(command, *options);
  command.on_run([&command, options, html] {
    finish_job_options(command, *options);
    study::on_job(options->spec, [&](const auto& simulate) {
      std::optional<OutputFile> page;
      if (html != nullptr) page.emplace(html->path);
      std::optional<OutputFile> plot;
      if (const std::string& path = options->run.numerics.loss_plot; !path.empty()) plot.emplace(path);
      const study::JobResult result = simulate();
      if (page.has_value()) page->write(job_page(result, *html));
      print(report_in(options->format, result));
      if (plot.has_value()) {
        plot->write(loss_chart(result));
        plot->commit();
      }
      if (page.has_value()) page->commit();
      if (result.numerics.has_value() && result.numerics->failure.has_value()) throw Error(*result.numerics->failure);
      if (!result.succeeded()) simulated_failure("job", "{}", job_sentence(result));
    });
  });
}

}  // namespace hcclsim::cli
