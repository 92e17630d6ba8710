#include "cli/commands/run/run_concurrent.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/draw/timeline.hpp"
#include "cli/print/failure.hpp"
#include "cli/print/run/concurrent_report.hpp"
#include "cli/terminal/output.hpp"
#include "sim/cluster.hpp"
#include "study/jobs/concurrent/concurrent.hpp"

namespace hcclsim::cli {
namespace {

void write_jobs(const study::ConcurrentResult& result, const std::vector<std::vector<Rank>>& shown, OutputFile& file) {
  std::vector<TimelineJob> jobs;
  for (std::size_t i = 0; i < result.jobs.size(); ++i) {
    const study::ConcurrentJobResult& job = result.jobs[i];
    TimelineJob& one = jobs.emplace_back(TimelineJob{
        .plan = job.step.plan, .trace = job.step.trace, .ranks = shown[i], .name = job.name, .npus = job.npus});
    if (i == 0) one.faults = result.faults;  // they are of all jobs
  }
  write_timeline(jobs, [&file](std::string_view text) { file.write(text); });
}

void print_result(const study::ConcurrentResult& result, OutputFormat format) {
  switch (format) {
    case OutputFormat::text:
      return print(concurrent_text(result));
    case OutputFormat::json:
      return print(concurrent_json(result));
    case OutputFormat::csv:
      print(concurrent_csv(result));
      print_apart(concurrent_remarks(result));
      return;
  }
  internal_error("unknown output format {}", static_cast<int>(format));
}

}  // namespace

void run_concurrent(const Command& command, const RunOptions& options, const ConcurrentOptions& concurrent) {
  if (!options.html.path.empty()) {
    bad_input("unsupported",
              "report run --concurrent: there is no page of concurrent jobs; use --trace or --format json");
  }
  const ConcurrentJobs jobs = concurrent_jobs(command, concurrent);
  if (options.timeline.trace.ends_with('/') || std::filesystem::is_directory(options.timeline.trace)) {
    bad_input("option", "--trace {} with --concurrent: jobs are in one timeline; give a file", options.timeline.trace);
  }
  options.timeline.require_chrome("--concurrent");
  study::on_concurrent_platform(jobs.jobs, [&](const sim::Cluster& cluster) {
    std::optional<OutputFile> timeline;
    if (!options.timeline.trace.empty()) timeline.emplace(options.timeline.trace);
    with_failure(options.format == OutputFormat::json, [&] {
      const study::ConcurrentResult result = simulate_concurrent(jobs.jobs, cluster, jobs.shown);
      if (timeline.has_value()) write_jobs(result, jobs.shown, *timeline);
      print_result(result, options.format);
    });
    if (timeline.has_value()) timeline->commit();
  });
}

}  // namespace hcclsim::cli
