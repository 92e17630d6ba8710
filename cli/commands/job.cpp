#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/commands/commands.hpp"
#include "cli/html/pages.hpp"
#include "cli/options/job_options.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/print/job/job_report.hpp"
#include "cli/print/output.hpp"
#include "study/job/job.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* job_footer =
    "Exit status 3 if the job does not succeed. --framework is mindspore unless given.\n"
    "Examples:\n"
    "  hcclsim job job.yaml --steps 500                      ResNet50 on the NPUs of its workers\n"
    "  hcclsim job job.yaml --platform atlas800t-a2-x2 --packing spread\n"
    "  hcclsim job ps.yaml --step-time 12ms --format json    parameter servers\n"
    "  hcclsim job elastic.yaml --fail 'worker-1 exit 137 at 1m' --checkpoint-every 100";

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
      const study::JobResult result = simulate();
      if (page.has_value()) page->write(job_page(result, *html));
      print(report_in(options->format, result));
      if (page.has_value()) page->commit();
      if (!result.succeeded()) simulated_failure("job", "{}", job_sentence(result));
    });
  });
}

}  // namespace hcclsim::cli
