#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"

/// Fits the parameters of a simulation to measured times: the sum of the squares of relative errors becomes as small as
/// it gets, by the method of Levenberg and Marquardt with numerical derivatives, from several starts, of which the best
/// end counts. Measurements that are far off weigh less (Huber's weights), so that some outliers do not move the fit.
///
/// What the times tell is judged at the end: a parameter whose standard error, by the covariance of all that are
/// fitted, is more than a quarter of its value and more than what counts as told is not determined. It goes back to
/// where it was and the others are fitted again. The noise behind that error is what is left of the times, but at
/// least 0.5 %: means of measured times are seldom closer.
namespace hcclsim::study {

struct FitParameter {
  std::string name;
  double start = 0;
  double least = 0;               ///< it does not fall below this
  double unit = 1;                ///< a change that is small beside usual values, from which steps are made
  double told = 0;                ///< a standard error up to this is always small enough
  std::vector<double> others{};   ///< where else to start: all parameters at their first, all at their second, …
  std::optional<double> alone{};  ///< …, and this one alone there, where it is sure to have an effect
};

enum class FitState : std::uint8_t {
  fitted,
  at_least,        ///< it would be smaller than `least`
  no_effect,       ///< the measured times hardly depend on it; it keeps its start
  not_told_apart,  ///< those in front of it have the same effect on all times; it keeps its start
};

/// Times under these values, one per measurement.
using SimulatedTimes = std::function<std::vector<Seconds>(std::span<const double> values)>;

struct Fit {
  std::vector<double> values;  ///< of all parameters
  std::vector<FitState> states;
  std::vector<double> errors;                   ///< standard errors of those that are fitted; 0 of others
  std::vector<std::vector<std::string>> alike;  ///< what a parameter that is not told apart has the effect of
  std::vector<std::vector<bool>> depends;       ///< per parameter and measurement: whether the time depends on it
  double far_off = 0;                           ///< a relative error above this is that of an outlier
};

/// Derivatives are simulated in children, several at a time. Throws Error(bad_input, "log") if there are not more
/// measurements than parameters that can be told.
[[nodiscard]] Fit fit_times(std::span<const FitParameter> parameters, std::span<const Seconds> measured,
                            const SimulatedTimes& simulate);

}  // namespace hcclsim::study
