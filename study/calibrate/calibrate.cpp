#include "study/calibrate/calibrate.hpp"

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

/// In the unit of the fit: bandwidths as 1 / factor, in which times are linear, times as microseconds, of latencies
/// what is added.
FitParameter parameter_of(const CalibratedParameter& parameter) {
  constexpr double step = 1e-3;
  constexpr double fastest = 1e-3;
  const std::string name = parameter.choice.name();
  switch (parameter.choice.target) {
    case Target::bandwidth:
      return {name, 1, fastest, step};
    case Target::latency:
      return {name, 0, -parameter.before / microsecond, step};
    default:
      return {name, parameter.before / microsecond, 0, step};
  }
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
        change.links[choice.kind].latency = values[j] * microsecond;
        break;
      case Target::task:
        change.task = values[j] * microsecond;
        break;
      case Target::base:
        change.base[choice.collective] = values[j] * microsecond;
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

/// Refuses speeds that no link of the platform can have: the times are of something else, or in other units.
void require_plausible(const CalibratedParameter& parameter, const std::string& platform) {
  constexpr double most = 50;
  const double factor = parameter.after / parameter.before;
  if (parameter.choice.target != Target::bandwidth || (factor < most && factor > 1 / most)) return;
  bad_input(
      "log",
      "the measured times want {:.3g} times the {} bandwidth of {}, {:.4g} GB/s; are they in microseconds, do they "
      "grow with the size, and are they of this platform and these ranks?",
      factor, name_of(parameter.choice.kind), platform, parameter.before / giga);
}

/// Leaves of the change what was not fitted.
PlatformChange only_fitted(const std::vector<CalibratedParameter>& parameters, const PlatformChange& change) {
  PlatformChange kept;
  for (const CalibratedParameter& parameter : parameters) {
    if (parameter.state != FitState::fitted && parameter.state != FitState::at_least) continue;
    const FitChoice& choice = parameter.choice;
    if (choice.target == Target::task) kept.task = change.task;
    if (choice.target == Target::base) kept.base[choice.collective] = change.base.at(choice.collective);
    if (choice.target == Target::bandwidth || choice.target == Target::latency)
      kept.links[choice.kind] = change.links.at(choice.kind);
  }
  return kept;
}

/// Fits of one platform to parts of the points.
class Fitter {
 public:
  Fitter(std::span<const FitChoice> choices, std::vector<FitParameter> parameters,
         const std::vector<CalibrationPoint>& points, const SimulatedPoints& simulate)
      : choices_(choices), parameters_(std::move(parameters)), points_(points), simulate_(simulate) {}

  /// To the points that are not held out, and not of the collective that is left out; `start`: values to begin with.
  [[nodiscard]] Fit fit(const std::string& left_out, std::span<const double> start) const {
    std::vector<FitParameter> parameters = parameters_;
    for (std::size_t j = 0; j < start.size(); ++j) parameters[j].start = start[j];
    std::vector<Seconds> measured;
    for (const CalibrationPoint& point : points_) {
      if (takes_part(point, left_out)) measured.push_back(point.measured);
    }
    return fit_times(parameters, measured, [&](std::span<const double> values) {
      const std::vector<Seconds> all = times(values);
      std::vector<Seconds> wanted;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (takes_part(points_[i], left_out)) wanted.push_back(all[i]);
      }
      return wanted;
    });
  }

  [[nodiscard]] std::vector<Seconds> times(std::span<const double> values) const {
    return simulate_(change_of(choices_, values));
  }

  [[nodiscard]] static bool takes_part(const CalibrationPoint& point, const std::string& left_out) {
    return !point.held_out && point.what != left_out;
  }

 private:
  std::span<const FitChoice> choices_;
  std::vector<FitParameter> parameters_;
  const std::vector<CalibrationPoint>& points_;
  const SimulatedPoints& simulate_;
};

CalibrationError mean_and_largest(const std::vector<double>& errors) {
  CalibrationError result;
  for (const double error : errors) {
    result.mean += std::abs(error) / static_cast<double>(errors.size());
    result.largest = std::max(result.largest, std::abs(error));
  }
  return result;
}

/// Every collective by a fit to the others, as far as these tell anything.
std::vector<PredictedCollective> predictions(const Fitter& fitter, const std::vector<CalibrationPoint>& points,
                                             std::span<const double> start) {
  std::vector<std::string> collectives;
  for (const CalibrationPoint& point : points) {
    if (std::find(collectives.begin(), collectives.end(), point.what) == collectives.end())
      collectives.push_back(point.what);
  }
  std::vector<PredictedCollective> predicted;
  if (collectives.size() < 2) return predicted;
  for (const std::string& what : collectives) {
    Fit fit;
    try {
      fit = fitter.fit(what, start);
    } catch (const Error& error) {
      if (error.kind() != "log") throw;
      continue;  // the others are too few
    }
    const std::vector<Seconds> times = fitter.times(fit.values);
    std::vector<double> errors;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].what == what) errors.push_back(times[i] / points[i].measured - 1);
    }
    predicted.push_back({what, mean_and_largest(errors)});
  }
  return predicted;
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
  return mean_and_largest(errors);
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
  for (const FitChoice& choice : choices) {
    result.parameters.push_back(described(cluster, costs, choice));
    parameters.push_back(parameter_of(result.parameters.back()));
    start.push_back(parameters.back().start);
  }
  const Fitter fitter(choices, parameters, points, simulate);
  const std::vector<Seconds> before = fitter.times(start);
  const Fit fit = fitter.fit("", {});
  const std::vector<Seconds> after = fitter.times(fit.values);
  const PlatformChange change = change_of(choices, fit.values);
  for (std::size_t j = 0; j < choices.size(); ++j) {
    CalibratedParameter& parameter = result.parameters[j];
    parameter.after = value_in(parameter, change);
    parameter.state = fit.states[j];
    parameter.alike = fit.alike[j];
    if (all && parameter.state == FitState::not_told_apart) {
      bad_input("log",
                "under-determined: the measured sizes cannot tell {} from {}; measure more and more different sizes, "
                "or say what to fit with --fit",
                choices[j].name(), fmt::join(parameter.alike, ", "));
    }
    require_plausible(parameter, cluster.path());
  }
  result.predicted = predictions(fitter, points, fit.values);
  std::size_t fitted = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].before = before[i];
    points[i].after = after[i];
    if (!points[i].held_out) points[i].outlier = fit.outliers[fitted++];
  }
  result.points = std::move(points);
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
