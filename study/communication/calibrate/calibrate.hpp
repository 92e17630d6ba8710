#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/task_cost.hpp"
#include "sim/cluster.hpp"
#include "study/communication/calibrate/bandwidth_log.hpp"
#include "study/communication/calibrate/least_squares.hpp"

/// Fits a platform to measured times: for each kind of link a factor on its speeds, what issuing a collective costs the
/// host (per task and per call), and an addition to the latency of links. What the measured times cannot tell apart
/// goes to what comes first in that order, and the rest stays as the platform has it. Every third size of a log is held
/// out: it takes no part in the fit and shows what the fit is worth; and each collective is predicted by a fit to the
/// others.
namespace hcclsim::study {

/// What can be fitted.
struct FitChoice {
  enum class Target : std::uint8_t { bandwidth, task, base, latency };
  Target target = Target::bandwidth;
  sim::LinkKind kind = sim::LinkKind::other;  ///< bandwidth, latency
  std::string collective{};  ///< base: of this collective, which has one of its own; empty: of all others

  /// As --fit has it: "hccs.bandwidth", "op.task", "op.base", "op.base.send-recv".
  [[nodiscard]] std::string name() const;
  bool operator==(const FitChoice&) const = default;
};

/// A platform other than its file.
struct PlatformChange {
  std::map<sim::LinkKind, sim::LinkAdjustment> links{};
  std::optional<Seconds> task{};          ///< `op.task_us`
  std::map<std::string, Seconds> base{};  ///< `op.base.NAME_us` by the name, `op.base_us` by an empty one

  [[nodiscard]] device::TaskCosts applied_to(device::TaskCosts costs) const;
};

/// One measured time.
struct CalibrationPoint {
  std::string file;
  std::string source{};     ///< for people: "ar.log (allreduce, 8 ranks)"
  std::string operation{};  ///< "allreduce", "transfer over hccs"
  std::string what;         ///< "allreduce, 8 ranks", "transfer over hccs"
  Bytes size = 0;
  Seconds measured = 0;
  bool held_out = false;
  Seconds before = 0;  ///< simulated on the platform as it was
  Seconds after = 0;   ///< … as it is fitted
  bool outlier = false;
};

/// What became of a parameter; values in bytes per second or seconds, of a kind of link those of its fastest one and
/// its shortest latency.
struct CalibratedParameter {
  FitChoice choice;
  double before = 0;
  double after = 0;
  double error = 0;  ///< standard error of `after`, if it was fitted
  FitState state = FitState::fitted;
  std::vector<std::string> alike{};       ///< what it is not told apart from
  std::vector<std::string> stands_for{};  ///< what is not told apart from it, whose effect it has taken over
  std::vector<std::string> sources{};     ///< of the points that depend on it

  [[nodiscard]] bool is_fitted() const { return state == FitState::fitted || state == FitState::at_least; }
};

/// |simulated / measured − 1| of some points.
struct CalibrationError {
  std::size_t points = 0;
  double mean = 0;
  double median = 0;  ///< outliers do not move it
  double largest = 0;
};

/// A collective, among all numbers of ranks, as a fit to the logs of the others predicts it.
struct PredictedCollective {
  std::string operation;
  CalibrationError error;
};

struct Calibration {
  std::vector<CalibratedParameter> parameters;
  std::vector<CalibrationPoint> points;
  std::vector<PredictedCollective> predicted;  ///< where there are several
  PlatformChange change;
};

[[nodiscard]] CalibrationError error_of(const Calibration& calibration, bool held_out, bool after);

/// Times of the wanted points on the changed platform; `wanted`: of each point.
using SimulatedPoints =
    std::function<std::vector<Seconds>(const PlatformChange& change, const std::vector<bool>& wanted)>;

/// Fits `choices`, the more important ones first. `costs`: those of the platform. With `all` every one of them must be
/// told by the points. Throws what fit_times throws, and Error(bad_input, "log") where a bandwidth would be 50 times
/// that of the platform or less than 1/50, and for a parameter that is not told though all are wanted.
[[nodiscard]] Calibration calibrate(const sim::Cluster& cluster, const device::TaskCosts& costs,
                                    std::span<const FitChoice> choices, std::vector<CalibrationPoint> points,
                                    const SimulatedPoints& simulate, bool all);

/// Marks every third point of each file as held out.
void hold_out(std::vector<CalibrationPoint>& points);

/// The time of a single transfer between the first two NPUs between which a link of the kind is the slowest on the way;
/// throws Error(bad_input, "log") if there are none.
[[nodiscard]] Seconds transfer_time(sim::Cluster& cluster, const device::TaskCosts& costs,
                                    const MeasuredTransfer& transfer, const std::string& file);

}  // namespace hcclsim::study
