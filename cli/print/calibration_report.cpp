#include "cli/print/calibration_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

std::string error_text(Seconds simulated, Seconds measured) { return signed_percent(simulated / measured - 1); }

bool is_time(const study::FitChoice& choice) { return choice.target != study::FitChoice::Target::bandwidth; }

std::string value_text(const study::FitChoice& choice, double value) {
  return is_time(choice) ? fmt::format("{:.6g} us", value / microsecond) : fmt::format("{:.6g} GB/s", value / giga);
}

/// A fitted value with its standard error.
std::string found_text(const study::CalibratedParameter& parameter) {
  const study::FitChoice& choice = parameter.choice;
  std::string text = value_text(choice, parameter.after);
  text += is_time(choice)
              ? fmt::format(" +- {:.2g} us", parameter.error / microsecond)
              : fmt::format(" +- {:.2g} GB/s (x {:.6g})", parameter.error / giga, parameter.after / parameter.before);
  if (!parameter.stands_for.empty()) {
    text += fmt::format(", with {}, which these times cannot tell from it", fmt::join(parameter.stands_for, ", "));
  }
  return text;
}

/// What became of a parameter that was to be fitted.
std::string fitted_text(const study::CalibratedParameter& parameter) {
  switch (parameter.state) {
    case study::FitState::fitted:
      return found_text(parameter);
    case study::FitState::at_least:
      return value_text(parameter.choice, parameter.after) + " (the least that it can be)";
    case study::FitState::no_effect:
      return "kept: the measured times hardly depend on it, or are too noisy";
    case study::FitState::not_told_apart:
      return fmt::format("kept: these times cannot tell it from {}", fmt::join(parameter.alike, ", "));
  }
  return {};
}

std::string_view name_of(study::FitState state) {
  constexpr std::array<std::string_view, 4> names{"fitted", "at_least", "no_effect", "not_told_apart"};
  return names.at(static_cast<std::size_t>(state));
}

std::string parameters_text(const study::Calibration& calibration) {
  Table table("<parameter|platform|<fitted");
  for (const study::CalibratedParameter& parameter : calibration.parameters) {
    table.add_row({parameter.choice.name(), value_text(parameter.choice, parameter.before), fitted_text(parameter)});
  }
  return table.to_string("  ");
}

std::string error_text(const study::CalibrationError& error) {
  return fmt::format("mean {:.2f} %, median {:.2f} %, largest {:.2f} %", error.mean * 100, error.median * 100,
                     error.largest * 100);
}

/// Each collective by a fit to the others.
std::string predicted_text(const study::Calibration& calibration) {
  if (calibration.predicted.empty()) return {};
  std::vector<std::string> parts;
  for (const study::PredictedCollective& predicted : calibration.predicted) {
    parts.push_back(fmt::format("{}: {}", predicted.operation, error_text(predicted.error)));
  }
  return fmt::format("Each collective by a fit to the others: {}\n", fmt::join(parts, "; "));
}

std::string errors_text(const study::Calibration& calibration, bool held_out) {
  const study::CalibrationError before = error_of(calibration, held_out, false);
  const char* const which = held_out ? "held out" : "fitted";
  if (before.points == 0) return fmt::format("{}: none", which);
  return fmt::format("{}: {} (before: {})", which, error_text(error_of(calibration, held_out, true)),
                     error_text(before));
}

Json error_json(const study::CalibrationError& error) {
  return {{"points", error.points}, {"mean", error.mean}, {"median", error.median}, {"largest", error.largest}};
}

Json errors_json(const study::Calibration& calibration, bool held_out) {
  const study::CalibrationError before = error_of(calibration, held_out, false);
  if (before.points == 0) return nullptr;
  return {{"before", error_json(before)}, {"after", error_json(error_of(calibration, held_out, true))}};
}

std::string remark_text(const study::CalibrationPoint& point) {
  if (point.held_out) return point.outlier ? "held out, far off" : "held out";
  return point.outlier ? "far off, weighs little" : "";
}

}  // namespace

std::string calibration_text(const study::FittedPlatform& fitted, const std::string& output) {
  std::string text = fmt::format("{} fitted to {}\n", fitted.on.platform, fmt::join(fitted.sources, ", "));
  text += parameters_text(fitted.calibration) + '\n';
  Table table("<measured|bytes|us|before us|error %|fitted us|error %|<");
  for (const study::CalibrationPoint& point : fitted.calibration.points) {
    table.add_row({point.what, fmt::format("{}", point.size), microseconds(point.measured, 2),
                   microseconds(point.before, 2), error_text(point.before, point.measured),
                   microseconds(point.after, 2), error_text(point.after, point.measured), remark_text(point)});
  }
  text += table.to_string("  ");
  text +=
      fmt::format("Errors: {}; {}\n", errors_text(fitted.calibration, false), errors_text(fitted.calibration, true));
  text += predicted_text(fitted.calibration);
  text += fmt::format("Written: {}\n", output);
  return text + remarks_text(fitted.on.unmodelled, fitted.on.notes);
}

std::string calibration_json(const study::FittedPlatform& fitted, const std::string& output) {
  Json parameters = Json::array();
  for (const study::CalibratedParameter& parameter : fitted.calibration.parameters) {
    parameters.push_back({{"name", parameter.choice.name()},
                          {"unit", is_time(parameter.choice) ? "s" : "B/s"},
                          {"platform", parameter.before},
                          {"value", parameter.after},
                          {"error", parameter.error},
                          {"state", name_of(parameter.state)},
                          {"not_told_from", Json(parameter.alike)},
                          {"stands_for", Json(parameter.stands_for)},
                          {"sources", Json(parameter.sources)}});
  }
  Json predicted = Json::array();
  for (const study::PredictedCollective& collective : fitted.calibration.predicted) {
    Json entry = error_json(collective.error);
    entry["what"] = collective.operation;
    predicted.push_back(std::move(entry));
  }
  Json points = Json::array();
  for (const study::CalibrationPoint& point : fitted.calibration.points) {
    points.push_back({{"file", point.file},
                      {"what", point.what},
                      {"bytes", point.size},
                      {"measured_s", point.measured},
                      {"before_s", point.before},
                      {"after_s", point.after},
                      {"held_out", point.held_out},
                      {"outlier", point.outlier}});
  }
  Json json{{"format_version", 1},
            {"platform", fitted.on.platform},
            {"output", output},
            {"parameters", parameters},
            {"points", points},
            {"fitted_errors", errors_json(fitted.calibration, false)},
            {"held_out_errors", errors_json(fitted.calibration, true)},
            {"predicted_collectives", predicted},
            {"notes", fitted.on.notes}};
  if (!fitted.on.unmodelled.empty()) json["not_modelled"] = fitted.on.unmodelled;
  return json.dump(2) + '\n';
}

}  // namespace hcclsim::cli
