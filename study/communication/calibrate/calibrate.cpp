#include "study/communication/calibrate/calibrate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using Target = FitChoice::Target;

constexpr std::size_t held_out_of = 3;

/// The fastest link and the shortest latency of a kind.
std::pair<BytesPerSecond, Seconds> speed_of(const sim::Cluster& cluster, sim::LinkKind kind) {
  std::pair<BytesPerSecond, Seconds> speed{0, std::numeric_limits<double>::infinity()};
  for (const sim::Link& link : cluster.links()) {
    if (link.kind != kind) continue;
    speed.first = std::max(speed.first, link.bandwidth);
    speed.second = std::min(speed.second, link.latency);
  }
  return speed;
}

CalibratedParameter described(const sim::Cluster& cluster, const device::TaskCosts& costs, const FitChoice& choice) {
  const auto value = [&] {
    switch (choice.target) {
      case Target::bandwidth:
        return speed_of(cluster, choice.kind).first;
      case Target::latency:
        return speed_of(cluster, choice.kind).second;
      case Target::task:
        return costs.issue.task;
      case Target::base:
        return choice.collective.empty() ? costs.issue.base : costs.issue.base_for(choice.collective);
    }
    internal_error("unknown target {}", static_cast<int>(choice.target));
  };
  return {.choice = choice, .before = value()};
}

constexpr double most_factor = 50;  // on a bandwidth

/// In the unit of the fit: bandwidths as 1 / factor, in which times are linear, times as microseconds, of latencies
/// what is added. `shortest`: of the measured times.
FitParameter parameter_of(const CalibratedParameter& parameter, Seconds shortest) {
  constexpr double told_us = 0.5;
  const std::string name = parameter.choice.name();
  switch (parameter.choice.target) {
    case Target::bandwidth:
      return {
          .name = name, .start = 1, .least = 1 / most_factor, .unit = 0.1, .told = 0, .others = {1.6, 0.6}, .alone = 4};
    case Target::latency: {
      const double least = -parameter.before / microsecond;
      return {.name = name, .start = 0, .least = least, .unit = 1, .told = told_us, .others = {2, least}};
    }
    case Target::task: {
      const double before = parameter.before / microsecond;
      return {.name = name, .start = before, .least = 0, .unit = 0.2, .told = told_us / 5, .others = {1 + before, 0}};
    }
    case Target::base: {
      const double half = shortest / microsecond / 2;
      return {.name = name,
              .start = parameter.before / microsecond,
              .least = 0,
              .unit = 1,
              .told = 2 * told_us,
              .others = {half, 0},
              .alone = 2 * half};
    }
  }
  internal_error("unknown target {}", static_cast<int>(parameter.choice.target));
}

/// A step of a fitted time below which digits say nothing.
double rounded(double value_us) {
  constexpr double digits = 1e6;
  return std::round(value_us * digits) / digits;
}

PlatformChange change_of(std::span<const FitChoice> choices, std::span<const double> values) {
  PlatformChange change;
  for (std::size_t j = 0; j < choices.size(); ++j) {
    const FitChoice& choice = choices[j];
    switch (choice.target) {
      case Target::bandwidth:
        change.links[choice.kind].bandwidth = 1 / values[j];
        break;
      case Target::latency:
        change.links[choice.kind].latency = rounded(values[j]) * microsecond;
        break;
      case Target::task:
        change.task = rounded(values[j]) * microsecond;
        break;
      case Target::base:
        change.base[choice.collective] = rounded(values[j]) * microsecond;
        break;
    }
  }
  return change;
}

double value_in(const CalibratedParameter& parameter, const PlatformChange& change) {
  const FitChoice& choice = parameter.choice;
  switch (choice.target) {
    case Target::bandwidth:
      return parameter.before * change.links.at(choice.kind).bandwidth;
    case Target::latency:
      return parameter.before + change.links.at(choice.kind).latency;
    case Target::task:
      return *change.task;
    case Target::base:
      return change.base.at(choice.collective);
  }
  internal_error("unknown target {}", static_cast<int>(choice.target));
}

/// The standard error in the unit of the parameter's value.
double error_in_unit(const CalibratedParameter& parameter, double value, double error) {
  // A bandwidth is before / value.
  return parameter.choice.target == Target::bandwidth ? parameter.before / (value * value) * error
                                                      : error * microsecond;
}

/// Refuses speeds that no link of the platform can have: the times are of something else, or in other units.
void require_plausible(const CalibratedParameter& parameter, const std::string& platform) {
  const double factor = parameter.after / parameter.before;
  const bool is_bandwidth = parameter.choice.target == Target::bandwidth;
  if (!is_bandwidth || !parameter.is_fitted() || (factor < 0.99 * most_factor && factor > 1 / most_factor)) return;
  bad_input(
      "log",
      "the measured times want {:.3g} times the {} bandwidth of {}, {:.4g} GB/s; are they in microseconds, do they "
      "grow with the size, and are they of this platform and these ranks?",
      factor, name_of(parameter.choice.kind), platform, parameter.before / giga);
}

/// Refuses times that no parameters come near to, and those that tell nothing.
void require_fitted(const Calibration& calibration, const std::string& platform) {
  constexpr double far_from_all = 0.5;
  const CalibrationError error = error_of(calibration, false, true);
  if (error.median > far_from_all) {
    bad_input("log",
              "the best fit of {} misses half of the measured times by {:.3g} % or more; are they in microseconds, do "
              "they grow with the size, and are they of this platform and these ranks?",
              platform, error.median * 100);
  }
  if (std::ranges::any_of(calibration.parameters, &CalibratedParameter::is_fitted)) return;
  bad_input("log", "under-determined: the measured sizes tell nothing of {}", platform);
}

/// With `all` wanted, refuses what the points do not tell.
void require_told(const CalibratedParameter& parameter) {
  if (parameter.is_fitted()) return;
  const std::string name = parameter.choice.name();
  bad_input("log",
            "under-determined: the measured sizes cannot tell {}{}; measure more and more different sizes, or say what "
            "to fit with --fit",
            name, parameter.alike.empty() ? "" : fmt::format(" from {}", fmt::join(parameter.alike, ", ")));
}

/// Leaves of the change what was fitted.
PlatformChange only_fitted(const std::vector<CalibratedParameter>& parameters, const PlatformChange& change) {
  PlatformChange kept;
  for (const CalibratedParameter& parameter : parameters) {
    if (!parameter.is_fitted()) continue;
    const FitChoice& choice = parameter.choice;
    switch (choice.target) {
      case Target::task:
        kept.task = change.task;
        break;
      case Target::base:
        kept.base[choice.collective] = change.base.at(choice.collective);
        break;
      case Target::bandwidth:
        kept.links[choice.kind].bandwidth = change.links.at(choice.kind).bandwidth;
        break;
      case Target::latency:
        kept.links[choice.kind].latency = change.links.at(choice.kind).latency;
        break;
    }
  }
  return kept;
}

/// Fits of one platform to parts of the points.
class Fitter {
 public:
  Fitter(std::span<const FitChoice> choices, std::vector<FitParameter> parameters,
         const std::vector<CalibrationPoint>& points, const SimulatedPoints& simulate)
      : choices_(choices), parameters_(std::move(parameters)), points_(points), simulate_(simulate) {}

  /// To the points that are not held out, and not of the operation that is left out.
  [[nodiscard]] Fit fit(const std::string& left_out) const {
    std::vector<bool> wanted;
    std::vector<Seconds> measured;
    for (const CalibrationPoint& point : points_) {
      wanted.push_back(!point.held_out && point.operation != left_out);
      if (wanted.back()) measured.push_back(point.measured);
    }
    return fit_times(parameters_, measured,
                     [&](std::span<const double> values) { return simulate_(change_of(choices_, values), wanted); });
  }

  [[nodiscard]] std::vector<Seconds> times(std::span<const double> values) const {
    return simulate_(change_of(choices_, values), std::vector<bool>(points_.size(), true));
  }

 private:
  std::span<const FitChoice> choices_;
  std::vector<FitParameter> parameters_;
  const std::vector<CalibrationPoint>& points_;
  const SimulatedPoints& simulate_;
};

CalibrationError summed_up(std::vector<double> errors) {
  CalibrationError result{.points = errors.size()};
  if (errors.empty()) return result;
  for (double& error : errors) error = std::abs(error);
  for (const double error : errors) result.mean += error / static_cast<double>(errors.size());
  std::sort(errors.begin(), errors.end());
  result.median = (errors[errors.size() / 2] + errors[(errors.size() - 1) / 2]) / 2;
  result.largest = errors.back();
  return result;
}

/// Every collective by a fit to the others, as far as these tell anything.
std::vector<PredictedCollective> predictions(const Fitter& fitter, const std::vector<CalibrationPoint>& points) {
  std::vector<std::string> operations;
  for (const CalibrationPoint& point : points) {
    if (std::find(operations.begin(), operations.end(), point.operation) == operations.end())
      operations.push_back(point.operation);
  }
  std::vector<PredictedCollective> predicted;
  if (operations.size() < 2) return predicted;
  for (const std::string& operation : operations) {
    Fit fit;
    try {
      fit = fitter.fit(operation);
    } catch (const Error& error) {
      if (error.kind() != "log") throw;
      continue;  // the others are too few
    }
    const std::vector<Seconds> times = fitter.times(fit.values);
    std::vector<double> errors;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].operation == operation) errors.push_back(times[i] / points[i].measured - 1);
    }
    predicted.push_back({operation, summed_up(std::move(errors))});
  }
  return predicted;
}

/// Names of the sources of the points that take part in the fit and depend on a parameter.
std::vector<std::string> sources_of(const std::vector<bool>& depends, const std::vector<CalibrationPoint>& points) {
  std::vector<std::string> sources;
  std::size_t fitted = 0;
  for (const CalibrationPoint& point : points) {
    if (point.held_out || !depends[fitted++]) continue;
    if (std::find(sources.begin(), sources.end(), point.source) == sources.end()) sources.push_back(point.source);
  }
  return sources;
}

/// Lets every parameter say which ones it stands for.
void note_substitutes(std::vector<CalibratedParameter>& parameters) {
  for (const CalibratedParameter& kept : parameters) {
    for (CalibratedParameter& other : parameters) {
      const auto& alike = kept.alike;
      if (std::find(alike.begin(), alike.end(), other.choice.name()) != alike.end())
        other.stands_for.push_back(kept.choice.name());
    }
  }
}

}  // namespace

std::string FitChoice::name() const {
  switch (target) {
    case Target::bandwidth:
      return fmt::format("{}.bandwidth", name_of(kind));
    case Target::latency:
      return fmt::format("{}.latency", name_of(kind));
    case Target::task:
      return "op.task";
    case Target::base:
      return collective.empty() ? "op.base" : fmt::format("op.base.{}", collective);
  }
  internal_error("unknown target {}", static_cast<int>(target));
}

device::TaskCosts PlatformChange::applied_to(device::TaskCosts costs) const {
  if (task.has_value()) costs.issue.task = *task;
  for (const auto& [collective, seconds] : base) {
    if (collective.empty()) {
      costs.issue.base = seconds;
    } else {
      costs.issue.base_of[collective] = seconds;
    }
  }
  return costs;
}

CalibrationError error_of(const Calibration& calibration, bool held_out, bool after) {
  std::vector<double> errors;
  for (const CalibrationPoint& point : calibration.points) {
    if (point.held_out == held_out) errors.push_back((after ? point.after : point.before) / point.measured - 1);
  }
  return summed_up(std::move(errors));
}

void hold_out(std::vector<CalibrationPoint>& points) {
  std::map<std::string, std::size_t> seen;
  for (CalibrationPoint& point : points) point.held_out = ++seen[point.file + point.what] % held_out_of == 0;
}

Calibration calibrate(const sim::Cluster& cluster, const device::TaskCosts& costs, std::span<const FitChoice> choices,
                      std::vector<CalibrationPoint> points, const SimulatedPoints& simulate, bool all) {
  Calibration result;
  std::vector<FitParameter> parameters;
  std::vector<double> start;
  Seconds shortest = std::numeric_limits<double>::infinity();
  for (const CalibrationPoint& point : points) shortest = std::min(shortest, point.measured);
  for (const FitChoice& choice : choices) {
    result.parameters.push_back(described(cluster, costs, choice));
    parameters.push_back(parameter_of(result.parameters.back(), shortest));
    start.push_back(parameters.back().start);
  }
  const Fitter fitter(choices, parameters, points, simulate);
  const std::vector<Seconds> before = fitter.times(start);
  const Fit fit = fitter.fit("");
  const std::vector<Seconds> after = fitter.times(fit.values);
  const PlatformChange change = change_of(choices, fit.values);
  for (std::size_t j = 0; j < choices.size(); ++j) {
    CalibratedParameter& parameter = result.parameters[j];
    parameter.after = value_in(parameter, change);
    parameter.error = error_in_unit(parameter, fit.values[j], fit.errors[j]);
    parameter.state = fit.states[j];
    parameter.alike = fit.alike[j];
    parameter.sources = sources_of(fit.depends[j], points);
    if (all) require_told(parameter);
    require_plausible(parameter, cluster.path());
  }
  note_substitutes(result.parameters);
  result.predicted = predictions(fitter, points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].before = before[i];
    points[i].after = after[i];
    points[i].outlier = std::abs(after[i] / points[i].measured - 1) > fit.far_off;
  }
  result.points = std::move(points);
  require_fitted(result, cluster.path());
  result.change = only_fitted(result.parameters, change);
  return result;
}

Seconds transfer_time(sim::Cluster& cluster, const device::TaskCosts& costs, const MeasuredTransfer& transfer,
                      const std::string& file) {
  for (Rank rank = 1; rank < cluster.size(); ++rank) {
    const sim::Route& route = cluster.route(0, rank);
    if (cluster.links()[route.slowest].kind != transfer.kind) continue;
    return costs.transfer_setup(route.transport, transfer.bytes) + route.latency +
           static_cast<double>(transfer.bytes) * route.write_factor / cluster.capacity(route.slowest);
  }
  bad_input("log", "{}: transfers over {}, but in {} no way from NPU 0 has such a link as its slowest", file,
            name_of(transfer.kind), cluster.path());
}

}  // namespace hcclsim::study
