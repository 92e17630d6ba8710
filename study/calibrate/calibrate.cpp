#include "study/calibrate/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

constexpr std::size_t held_out_of = 3;

/// The fastest link and the shortest latency of a kind.
CalibratedKind described(const sim::Cluster& cluster, sim::LinkKind kind) {
  CalibratedKind result{.kind = kind, .latency = std::numeric_limits<double>::infinity()};
  for (const sim::Link& link : cluster.links()) {
    if (link.kind != kind) continue;
    result.bandwidth = std::max(result.bandwidth, link.bandwidth);
    result.latency = std::min(result.latency, link.latency);
  }
  return result;
}

/// The number of the parameter's unit: bandwidths are fitted as 1 / factor, in which times are linear, latencies as
/// microseconds.
FitParameter parameter_of(const FitChoice& choice, const CalibratedKind& kind) {
  constexpr double step = 1e-3;
  constexpr double fastest = 1e-3;
  if (choice.latency) {
    return {fmt::format("{} latency", name_of(choice.kind)), 0, -kind.latency / microsecond, step};
  }
  return {fmt::format("{} bandwidth", name_of(choice.kind)), 1, fastest, step};
}

/// Refuses speeds that no link of the platform can have: the times are of something else, or in other units.
void require_plausible(const CalibratedKind& kind, const std::string& platform) {
  constexpr double most = 50;
  const double factor = kind.adjustment.bandwidth;
  if (!kind.fitted_bandwidth.value_or(false) || (factor < most && factor > 1 / most)) return;
  bad_input(
      "log",
      "the measured times want {:.3g} times the {} bandwidth of {}, {:.4g} GB/s; are they in microseconds, do they "
      "grow with the size, and are they of this platform and these ranks?",
      factor, name_of(kind.kind), platform, kind.bandwidth / giga);
}

}  // namespace

std::map<sim::LinkKind, sim::LinkAdjustment> Calibration::adjustments() const {
  std::map<sim::LinkKind, sim::LinkAdjustment> result;
  for (const CalibratedKind& kind : kinds) {
    if (kind.fitted_bandwidth.value_or(false) || kind.fitted_latency.value_or(false))
      result[kind.kind] = kind.adjustment;
  }
  return result;
}

CalibrationError error_of(const Calibration& calibration, bool held_out, bool after) {
  CalibrationError result;
  double count = 0;
  for (const CalibrationPoint& point : calibration.points) {
    if (point.held_out != held_out) continue;
    const double error = std::abs((after ? point.after : point.before) / point.measured - 1);
    result.mean += error;
    result.largest = std::max(result.largest, error);
    ++count;
  }
  if (count > 0) result.mean /= count;
  return result;
}

void hold_out(std::vector<CalibrationPoint>& points) {
  std::map<std::string, std::size_t> seen;
  for (CalibrationPoint& point : points) point.held_out = ++seen[point.file + point.what] % held_out_of == 0;
}

Calibration calibrate(sim::Cluster& cluster, std::span<const FitChoice> choices, std::vector<CalibrationPoint> points,
                      const std::function<std::vector<Seconds>()>& simulate) {
  Calibration result;
  std::map<sim::LinkKind, std::size_t> index;
  std::vector<FitParameter> parameters;
  for (const FitChoice& choice : choices) {
    const auto [place, is_new] = index.try_emplace(choice.kind, result.kinds.size());
    if (is_new) result.kinds.push_back(described(cluster, choice.kind));
    parameters.push_back(parameter_of(choice, result.kinds[place->second]));
  }
  const auto adjust = [&](std::span<const double> values) {
    std::map<sim::LinkKind, sim::LinkAdjustment> adjustments;
    for (std::size_t j = 0; j < choices.size(); ++j) {
      sim::LinkAdjustment& adjustment = adjustments[choices[j].kind];
      if (choices[j].latency) {
        adjustment.latency = values[j] * microsecond;
      } else {
        adjustment.bandwidth = 1 / values[j];
      }
    }
    cluster.adjust(adjustments);
    return adjustments;
  };

  std::vector<Seconds> measured;
  for (const CalibrationPoint& point : points) {
    if (!point.held_out) measured.push_back(point.measured);
  }
  const auto simulate_all = [&](std::span<const double> values) {
    adjust(values);
    return simulate();
  };
  const auto simulate_fitted = [&](std::span<const double> values) {
    const std::vector<Seconds> all = simulate_all(values);
    std::vector<Seconds> times;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!points[i].held_out) times.push_back(all[i]);
    }
    return times;
  };
  std::vector<double> start;
  for (const FitParameter& parameter : parameters) start.push_back(parameter.start);
  const std::vector<Seconds> before = simulate_all(start);
  const Fit fit = fit_times(parameters, measured, simulate_fitted);
  const std::vector<Seconds> after = simulate_all(fit.values);
  const auto adjustments = adjust(fit.values);

  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].before = before[i];
    points[i].after = after[i];
  }
  result.points = std::move(points);
  for (std::size_t j = 0; j < choices.size(); ++j) {
    CalibratedKind& kind = result.kinds[index[choices[j].kind]];
    kind.adjustment = adjustments.at(kind.kind);
    (choices[j].latency ? kind.fitted_latency : kind.fitted_bandwidth) = fit.has_effect[j];
    if (choices[j].latency) kind.latency_at_zero = fit.at_bound[j];
  }
  for (const CalibratedKind& kind : result.kinds) require_plausible(kind, cluster.path());
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
