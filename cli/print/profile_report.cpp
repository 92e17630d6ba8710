#include "cli/print/profile_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/json.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::size_t most_names = 8;

/// The first of the names, and how many more there are.
std::string shortened(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), most_names);
  const std::size_t more = names.size() - shown;
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     more > 0 ? fmt::format(" and {} more (--format json)", more) : "");
}

std::string kernels_text(const study::KernelMatch& kernels) {
  std::string text = fmt::format(
      "Kernels: {} of the model's have measured times, {} ms per step{}, means of {} iteration{} (told apart by {})\n",
      kernels.replaced, milliseconds(kernels.replaced_time),
      kernels.idle_time > 0 ? fmt::format(" with {} ms of waiting for the host", milliseconds(kernels.idle_time)) : "",
      kernels.iterations, kernels.iterations == 1 ? "" : "s", kernels.iterations_by);
  if (!kernels.modelled.empty()) {
    text += fmt::format("  {} were not measured and keep the cost model, {} ms: {}\n", kernels.modelled.size(),
                        milliseconds(kernels.modelled_time), shortened(kernels.modelled));
  }
  if (!kernels.unmatched.empty()) {
    std::vector<std::string> names;
    for (const auto& kernel : kernels.unmatched) {
      names.push_back(fmt::format("{} ({}, {} ms)", kernel.name, kernel.type, milliseconds(kernel.time)));
    }
    text += fmt::format("  {} measured are none of the model's, {} ms: {}\n", names.size(),
                        milliseconds(kernels.unmatched_time), shortened(names));
    text += fmt::format("    {} ms of them are in the times of the kernels behind them, {} ms are not simulated\n",
                        milliseconds(kernels.unmatched_time - kernels.not_simulated_time),
                        milliseconds(kernels.not_simulated_time));
  }
  return text;
}

}  // namespace

std::string profile_text(const study::ProfileResult& report) {
  std::vector<std::string> files;
  for (const study::ProfileFile& file : report.profile.files)
    files.push_back(fmt::format("{} ({})", file.file, file.kind));
  std::string text = fmt::format("Back-test against {}\n", fmt::join(files, ", "));
  Table table({{"phase", Table::Align::left},
               {"measured ms"},
               {"simulated ms"},
               {"error %"},
               {"measured in", Table::Align::left},
               {"simulated from", Table::Align::left}});
  for (const study::BackTestRow& row : report.test.rows) {
    table.add_row({row.phase, milliseconds(row.measured), milliseconds(row.simulated), signed_percent(row.error()),
                   row.measured_in, row.simulated_from});
  }
  text +=
      report.test.rows.empty() ? "  Nothing was measured that the simulation has a time for\n" : table.to_string("  ");
  for (const std::string& note : report.test.notes) text += fmt::format("  {}\n", note);
  for (const std::string& note : report.profile.notes) text += fmt::format("  {}\n", note);
  if (report.profile.iterations > 0) {
    text += fmt::format("Step trace: means of {} iteration{}\n", report.profile.iterations,
                        report.profile.iterations == 1 ? "" : "s");
  }
  if (report.profile.scale.has_value()) {
    const bool all = report.profile.scales_update;
    text += fmt::format("{} kernels of the cost model are scaled by {:.4f} to the measured {}\n",
                        all ? "All" : "Forward and backward", *report.profile.scale, all ? "Computing" : "FP+BP");
  }
  if (report.profile.kernels.has_value()) text += kernels_text(*report.profile.kernels);
  return text + '\n';
}

Json profile_json(const study::ProfileResult& report) {
  Json json{{"files", Json::array()}, {"back_test", Json::array()}};
  for (const study::ProfileFile& file : report.profile.files) {
    json["files"].push_back({{"file", file.file}, {"kind", file.kind}});
  }
  for (const study::BackTestRow& row : report.test.rows) {
    json["back_test"].push_back({{"phase", row.phase},
                                 {"measured_s", row.measured},
                                 {"simulated_s", row.simulated},
                                 {"error", std::isfinite(row.error()) ? Json(row.error()) : Json()},
                                 {"measured_in", row.measured_in},
                                 {"simulated_from", row.simulated_from}});
  }
  json["notes"] = report.test.notes;
  for (const std::string& note : report.profile.notes) json["notes"].push_back(note);
  json["scale"] = report.profile.scale.has_value() ? Json(*report.profile.scale) : Json();
  json["kernels"] = nullptr;
  if (!report.profile.kernels.has_value()) return json;
  const study::KernelMatch& kernels = *report.profile.kernels;
  Json unmatched = Json::array();
  for (const auto& kernel : kernels.unmatched) {
    unmatched.push_back({{"name", kernel.name}, {"type", kernel.type}, {"time_s", kernel.time}});
  }
  json["kernels"] = {{"iterations", kernels.iterations},
                     {"iterations_by", kernels.iterations_by},
                     {"replaced", kernels.replaced},
                     {"replaced_s", kernels.replaced_time},
                     {"modelled", kernels.modelled},
                     {"modelled_s", kernels.modelled_time},
                     {"unmatched", unmatched},
                     {"unmatched_s", kernels.unmatched_time},
                     {"not_simulated_s", kernels.not_simulated_time}};
  return json;
}

}  // namespace hcclsim::cli
