#include "cli/commands/commands.hpp"

#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/html/pages.hpp"
#include "cli/options/collective_options.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/print/baseline.hpp"
#include "cli/print/collective_report.hpp"
#include "cli/print/failure.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/ticker.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* collective_examples =
    "Examples:\n"
    "  hcclsim collective allreduce -b 8K -e 64M -f 2          eight 910A, as all_reduce_test prints it\n"
    "  hcclsim collective alltoall -b 1M -e 1G -f 4 --platform atlas800t-a2 --extended --plot alltoall.svg";

void run(const CollectiveOptions& command, study::MeasureSpec spec, const BaselineOptions& regression) {
  spec.platform.file = study::find_platform(command.platform);
  std::optional<OutputFile> plot;  // opened before the measurement, which may take long
  if (!command.plot.empty()) plot.emplace(command.plot);
  std::optional<OutputFile> html;
  if (!command.html.path.empty()) html.emplace(command.html.path);
  ResultCheck check(regression, study::ResultKind::collective);
  const Ticker ticker(command.op, "sizes");
  const Measurement measurement = measure_collective(spec, ticker.work());
  if (html.has_value()) html->write(collective_page(measurement, spec, command.op, command.html));
  if (command.format == "csv") print_remarks_apart(measurement.on.unmodelled, measurement.on.notes);
  check.print_result(command.format, collective_json(measurement, spec, command.op),
                     command.format == "csv" ? collective_csv(measurement, spec, command.op)
                                             : collective_text(measurement, spec, command.extended));
  if (html.has_value()) html->commit();
  if (plot.has_value()) {
    plot->write(collective_plot(measurement, command.op));
    plot->commit();
  }
  if (!measurement.ok()) throw Error(ErrorCode::check_failed, "collective", command.op + " gives wrong results");
  check.require_equal();
}

}  // namespace

void add_collective_command(Command& app) {
  app.add_command("collective", "Measure a collective as hccl_test does", [](Command& command) {
    command.footer(collective_examples);
    set_up_collective(command, nullptr);
  });
}

void set_up_collective(Command& command, const std::shared_ptr<const HtmlReport>& html) {
  const auto options = std::make_shared<CollectiveOptions>();
  const auto regression = std::make_shared<BaselineOptions>();
  add_collective_options(command, *options);
  add_baseline_options(command, *regression);
  command.on_run([&command, options, regression, html] {
    if (html != nullptr) options->html = *html;
    with_junit(command, *regression, name_of(study::ResultKind::collective), [&] {
      check_baseline_options(command, *regression);
      with_failure(options->format == "json", [&] { run(*options, measure_spec(command, *options), *regression); });
    });
  });
}

}  // namespace hcclsim::cli
