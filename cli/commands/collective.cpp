#include "cli/commands/collective.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/html/collective_page.hpp"
#include "cli/options/collective_options.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/platform_path.hpp"
#include "cli/print/collective_report.hpp"
#include "cli/print/output.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* collective_examples =
    "Examples:\n"
    "  hcclsim collective allreduce -b 8K -e 64M -f 2          eight 910A, as all_reduce_test prints it\n"
    "  hcclsim collective alltoall -b 1M -e 1G -f 4 --platform atlas800t-a2 --extended --plot alltoall.svg";

/// What the child sends: whether all checks succeeded, then what is to be printed, then the picture.
std::string measured_report(const CollectiveOptions& command, const MeasurementOptions& options,
                            const std::string& platform, std::optional<OutputFile>& html) {
  sim::Cluster cluster(platform, command.platform_edits);
  const Measurement measurement = measure_collective(options, cluster);
  if (html.has_value()) html->write(collective_page(measurement, options, command.op, command.html));
  std::string report = command.format == "json"  ? collective_json(measurement, options, command.op)
                       : command.format == "csv" ? collective_csv(measurement, command.op)
                                                 : collective_text(measurement, command.extended);
  if (command.format == "csv") print_remarks_apart(measurement.unmodelled, measurement.notes);
  const std::string plot = command.plot.empty() ? "" : collective_plot(measurement, command.op);
  return fmt::format("{}{:020}{}{}", all_right(measurement) ? '1' : '0', report.size(), report, plot);
}

void run(const CollectiveOptions& command, const MeasurementOptions& options) {
  const std::string platform = find_platform(command.platform);
  std::optional<OutputFile> plot;  // opened before the measurement, which may take long
  if (!command.plot.empty()) plot.emplace(command.plot);
  std::optional<OutputFile> html;  // opened here, written by the child, which shares it
  if (!command.html.path.empty()) html.emplace(command.html.path);
  const std::string sent = run_in_child([&] { return measured_report(command, options, platform, html); });
  constexpr std::size_t digits = 20;
  const std::size_t length = std::stoull(sent.substr(1, digits));
  print(std::string_view(sent).substr(1 + digits, length));
  if (html.has_value()) html->commit();
  if (plot.has_value()) {
    plot->write(std::string_view(sent).substr(1 + digits + length));
    plot->commit();
  }
  if (sent.front() == '0') throw Error(ErrorCode::check_failed, "collective", command.op + " gives wrong results");
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
  add_collective_options(command, *options);
  command.on_run([&command, options, html] {
    if (html != nullptr) options->html = *html;
    run(*options, measurement_options(command, *options));
  });
}

}  // namespace hcclsim::cli
