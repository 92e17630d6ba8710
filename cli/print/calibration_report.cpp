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
  Table table("<links|platform|<fitted");
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

std::string calibration_text(const study::FittedPlatform& fitted, const std::string& output) {
  std::string text = fmt::format("{} fitted to {}\n", fitted.on.platform, fmt::join(fitted.sources, ", "));
  text += parameters_text(fitted.calibration) + '\n';
  Table table("<measured|bytes|us|before us|error %|fitted us|error %|<");
  for (const study::CalibrationPoint& point : fitted.calibration.points) {
    table.add_row({point.what, fmt::format("{}", point.size), microseconds(point.measured, 2),
                   microseconds(point.before, 2), error_text(point.before, point.measured),
                   microseconds(point.after, 2), error_text(point.after, point.measured),
                   point.held_out ? "held out" : ""});
  }
  text += table.to_string("  ");
  text +=
      fmt::format("Errors: {}; {}\n", errors_text(fitted.calibration, false), errors_text(fitted.calibration, true));
  text += fmt::format("Written: {}\n", output);
  return text + remarks_text(fitted.on.unmodelled, fitted.on.notes);
}

std::string calibration_json(const study::FittedPlatform& fitted, const std::string& output) {
  Json kinds = Json::array();
  for (const study::CalibratedKind& kind : fitted.calibration.kinds) {
    kinds.push_back({{"kind", name_of(kind.kind)},
                     {"bandwidth_factor", kind.adjustment.bandwidth},
                     {"added_latency_s", kind.adjustment.latency},
                     {"bandwidth_fitted", kind.fitted_bandwidth.value_or(false)},
                     {"latency_fitted", kind.fitted_latency.value_or(false)},
                     {"latency_at_zero", kind.latency_at_zero}});
  }
  Json points = Json::array();
  for (const study::CalibrationPoint& point : fitted.calibration.points) {
    points.push_back({{"file", point.file},
                      {"what", point.what},
                      {"bytes", point.size},
                      {"measured_s", point.measured},
                      {"before_s", point.before},
                      {"after_s", point.after},
                      {"held_out", point.held_out}});
  }
  Json json{{"format_version", 1},
            {"platform", fitted.on.platform},
            {"output", output},
            {"links", kinds},
            {"points", points},
            {"fitted_errors", errors_json(fitted.calibration, false)},
            {"held_out_errors", errors_json(fitted.calibration, true)},
            {"notes", fitted.on.notes}};
  if (!fitted.on.unmodelled.empty()) json["not_modelled"] = fitted.on.unmodelled;
  return json.dump(2) + '\n';
}

}  // namespace hcclsim::cli
