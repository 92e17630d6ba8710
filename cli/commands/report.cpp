#include "cli/commands/commands.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/output_file.hpp"
#include "cli/commands/sweep/sweep_grid.hpp"
#include "cli/html/pages.hpp"
#include "cli/options/html_report.hpp"
#include "cli/options/parse/command.hpp"
#include "study/compare/plans/plan_search.hpp"
#include "study/compare/sweep/generations.hpp"
#include "study/compare/sweep/store.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  hcclsim report run --hcom-parallel on -o step.html\n"
    "  hcclsim report tune --model vgg16 -o split.html\n"
    "  hcclsim report sweep points.db -o sweep.html\n"
    "  hcclsim report collective allreduce -b 8K -e 64M -f 2 --output allreduce.html\n"
    "  hcclsim report job job.yaml --steps 500 -o job.html";

/// The sub-command that works as `name` and writes a report. In hccl_test's options -o is the reduction.
Command& add_reported(Command& report, const char* name, const char* description, const char* output,
                      const std::shared_ptr<HtmlReport>& html) {
  Command& command = report.add_command(name, description);
  command.begin_group("Report");
  command.add(output, written_file(html->path), "HTML file to write").required();
  command.add("--title", text(html->title), "Title of the report");
  command.begin_group();
  return command;
}

/// Of a database that is there: nothing is computed, and nothing printed.
void add_sweep_report(Command& report, const std::shared_ptr<HtmlReport>& html) {
  Command& command = add_reported(report, "sweep", "Of the points of a sweep", "-o,--output", html);
  const auto database = std::make_shared<std::string>();
  command.add("DATABASE", read_file(*database), "File that 'hcclsim sweep' has made").value_name("TEXT").required();
  command.on_run([database, html] {
    OutputFile file(html->path);
    std::vector<study::StoredPoint> points = study::SweepStore(*database, study::SweepStore::Access::read).points();
    study::mark_stale(points, [](const std::string& swept) { return sweep_of(swept); });
    file.write(sweep_page(study::as_runs(study::newest(std::move(points))), *database, *html));
    file.commit();
  });
}

}  // namespace

void add_report_command(Command& app, const std::string& command_line) {
  app.add_command("report", "One HTML file that shows what another command finds", [command_line](Command& report) {
    report.require_command();
    report.footer(examples);
    const auto html = std::make_shared<HtmlReport>();
    html->command = command_line;
    set_up_run(add_reported(report, "run", "Of a training step", "-o,--output", html), html);
    set_up_tune(add_reported(report, "tune", "Of the best gradient split, or with --compress of what that gains",
                             "-o,--output", html),
                html);
    add_sweep_report(report, html);
    set_up_collective(add_reported(report, "collective", "Of a collective over sizes", "--output", html), html);
    set_up_job(add_reported(report, "job", "Of an MSJob of Kubernetes", "-o,--output", html), html);
  });
}

}  // namespace hcclsim::cli
