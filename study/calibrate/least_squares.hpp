#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"

/// Fits the parameters of a simulation to measured times: the sum of the squares of relative errors becomes as small as
/// it gets, by the method of Levenberg and Marquardt with numerical derivatives. Times that are linear in the
/// parameters, as alpha + n · beta is, need one step. Measurements that are far off weigh less (Huber's weights), so
/// that some outliers do not move the fit.
namespace hcclsim::study {

struct FitParameter {
  std::string name;
  double start = 0;
  double least = 0;  ///< it does not fall below this
  double step = 0;   ///< for the derivatives
};

enum class FitState : std::uint8_t {
  fitted,
  at_least,        ///< it would be smaller than `least`
  no_effect,       ///< no measured time depends on it; it keeps its start
  not_told_apart,  ///< those in front of it have the same effect on all times; it keeps its start
};

/// Times under these values, one per measurement.
using SimulatedTimes = std::function<std::vector<Seconds>(std::span<const double> values)>;

struct Fit {
  std::vector<double> values;  ///< of all parameters
  std::vector<FitState> states;
  std::vector<std::vector<std::string>> alike;  ///< what a parameter that is not told apart has the effect of
  std::vector<bool> outliers;                   ///< of the measurements
};

/// Throws Error(bad_input, "log") if there are not more measurements than parameters that can be told apart.
[[nodiscard]] Fit fit_times(std::span<const FitParameter> parameters, std::span<const Seconds> measured,
                            const SimulatedTimes& simulate);

}  // namespace hcclsim::study
