#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/task_cost.hpp"
#include "sim/cluster.hpp"
#include "study/calibrate/bandwidth_log.hpp"
#include "study/calibrate/least_squares.hpp"

/// Fits a platform's links to measured times: for each kind of link a factor on its speeds and an addition to its
/// latency, which is the part of alpha that a link has (the others, such as set-ups and notifies, are the platform's
/// and stay). Every third size of a source is held out: it takes no part in the fit and shows what the fit is worth.
namespace hcclsim::study {

/// One measured time.
struct CalibrationPoint {
  std::string file;
  std::string what;  ///< "allreduce, 8 ranks", "one transfer over hccs"
  Bytes size = 0;
  Seconds measured = 0;
  bool held_out = false;
  Seconds before = 0;  ///< simulated on the platform as it was
  Seconds after = 0;   ///< … as it is fitted
};

/// What is fitted of a kind of link.
struct CalibratedKind {
  sim::LinkKind kind = sim::LinkKind::other;
  BytesPerSecond bandwidth = 0;  ///< of its fastest link, as the platform has it
  Seconds latency = 0;           ///< the least of its links, likewise
  sim::LinkAdjustment adjustment{};
  std::optional<bool> fitted_bandwidth{};  ///< none: was not to be fitted; false: no measured time depends on it
  std::optional<bool> fitted_latency{};
  bool latency_at_zero = false;  ///< measured times are shorter than the platform's other parts of alpha allow
};

struct Calibration {
  std::vector<CalibratedKind> kinds;
  std::vector<CalibrationPoint> points;

  [[nodiscard]] std::map<sim::LinkKind, sim::LinkAdjustment> adjustments() const;
};

/// Mean and largest of |simulated / measured − 1|.
struct CalibrationError {
  double mean = 0;
  double largest = 0;
};
[[nodiscard]] CalibrationError error_of(const Calibration& calibration, bool held_out, bool after);

struct FitChoice {
  sim::LinkKind kind = sim::LinkKind::other;
  bool latency = false;  ///< else bandwidth
};

/// Fits `choices` so that `simulate`, called after the cluster's links have been adjusted, gives the measured times of
/// `points`, whose held_out is set. Leaves the cluster as fitted. Throws what fit_times throws, and
/// Error(bad_input, "log") where a bandwidth would be more than 50 times or less than 1/50 of the platform's.
[[nodiscard]] Calibration calibrate(sim::Cluster& cluster, std::span<const FitChoice> choices,
                                    std::vector<CalibrationPoint> points,
                                    const std::function<std::vector<Seconds>()>& simulate);

/// Marks every third point of each file as held out.
void hold_out(std::vector<CalibrationPoint>& points);

/// The time of a single transfer between the first two NPUs between which a link of the kind is the slowest on the way;
/// throws Error(bad_input, "log") if there are none.
[[nodiscard]] Seconds transfer_time(sim::Cluster& cluster, const device::TaskCosts& costs,
                                    const MeasuredTransfer& transfer, const std::string& file);

}  // namespace hcclsim::study
