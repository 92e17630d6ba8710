#include "cli/print/calibration_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/print/output.hpp"

namespace hcclsim::cli {
namespace {

std::string error_text(Seconds simulated, Seconds measured) { return signed_percent(simulated / measured - 1); }

/// What became of a parameter that was to be fitted.
std::string fitted_text(const std::optional<bool>& fitted, const std::string& value) {
  return fitted.value_or(false) ? value : "kept: no measured time depends on it";
}

std::string parameters_text(const study::Calibration& calibration) {
  using Align = Table::Align;
  Table table({{"links", Align::left}, {"platform"}, {"fitted", Align::left}});
  for (const study::CalibratedKind& kind : calibration.kinds) {
    if (kind.fitted_bandwidth.has_value()) {
      table.add_row({fmt::format("{} bandwidth", name_of(kind.kind)), fmt::format("{:g} GB/s", kind.bandwidth / giga),
                     fitted_text(kind.fitted_bandwidth, fmt::format("{:.6g} GB/s (x {:.6g})",
                                                                    kind.bandwidth * kind.adjustment.bandwidth / giga,
                                                                    kind.adjustment.bandwidth))});
    }
    if (kind.fitted_latency.has_value()) {
      table.add_row({fmt::format("{} latency", name_of(kind.kind)), fmt::format("{:g} us", kind.latency / microsecond),
                     fitted_text(kind.fitted_latency,
                                 fmt::format("{:.6g} us{}", (kind.latency + kind.adjustment.latency) / microsecond,
                                             kind.latency_at_zero ? " (the least that it can be)" : ""))});
    }
  }
  return table.to_string("  ");
}

std::string errors_text(const study::Calibration& calibration, bool held_out) {
  const study::CalibrationError before = error_of(calibration, held_out, false);
  const study::CalibrationError after = error_of(calibration, held_out, true);
  return fmt::format("{}: mean {:.2f} %, largest {:.2f} % (before: {:.2f} %, {:.2f} %)",
                     held_out ? "held out" : "fitted", after.mean * 100, after.largest * 100, before.mean * 100,
                     before.largest * 100);
}

Json errors_json(const study::Calibration& calibration, bool held_out) {
  const auto json = [](const study::CalibrationError& error) {
    return Json{{"mean", error.mean}, {"largest", error.largest}};
  };
  return {{"before", json(error_of(calibration, held_out, false))},
          {"after", json(error_of(calibration, held_out, true))}};
}

}  // namespace

std::string calibration_text(const CalibrationReport& report) {
  using Align = Table::Align;
  std::string text = fmt::format("{} fitted to {}\n", report.platform, fmt::join(report.sources, ", "));
  text += parameters_text(report.calibration) + '\n';
  Table table({{"measured", Align::left},
               {"bytes"},
               {"us"},
               {"before us"},
               {"error %"},
               {"fitted us"},
               {"error %"},
               {"", Align::left}});
  for (const study::CalibrationPoint& point : report.calibration.points) {
    table.add_row({point.what, fmt::format("{}", point.size), microseconds(point.measured, 2),
                   microseconds(point.before, 2), error_text(point.before, point.measured),
                   microseconds(point.after, 2), error_text(point.after, point.measured),
                   point.held_out ? "held out" : ""});
  }
  text += table.to_string("  ");
  text +=
      fmt::format("Errors: {}; {}\n", errors_text(report.calibration, false), errors_text(report.calibration, true));
  text += fmt::format("Written: {}\n", report.output);
  text += unmodelled_line(report.unmodelled);
  for (const std::string& note : report.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

std::string calibration_json(const CalibrationReport& report) {
  Json kinds = Json::array();
  for (const study::CalibratedKind& kind : report.calibration.kinds) {
    kinds.push_back({{"kind", name_of(kind.kind)},
                     {"bandwidth_factor", kind.adjustment.bandwidth},
                     {"added_latency_s", kind.adjustment.latency},
                     {"bandwidth_fitted", kind.fitted_bandwidth.value_or(false)},
                     {"latency_fitted", kind.fitted_latency.value_or(false)},
                     {"latency_at_zero", kind.latency_at_zero}});
  }
  Json points = Json::array();
  for (const study::CalibrationPoint& point : report.calibration.points) {
    points.push_back({{"file", point.file},
                      {"what", point.what},
                      {"bytes", point.size},
                      {"measured_s", point.measured},
                      {"before_s", point.before},
                      {"after_s", point.after},
                      {"held_out", point.held_out}});
  }
  Json json{{"format_version", 1},
            {"platform", report.platform},
            {"output", report.output},
            {"links", kinds},
            {"points", points},
            {"fitted_errors", errors_json(report.calibration, false)},
            {"held_out_errors", errors_json(report.calibration, true)},
            {"notes", report.notes}};
  if (!report.unmodelled.empty()) json["not_modelled"] = report.unmodelled;
  return json.dump(2) + '\n';
}

}  // namespace hcclsim::cli
