#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"

/// Fits the parameters of a simulation to measured times: the sum of the squares of relative errors becomes as small as
/// it gets, by the method of Levenberg and Marquardt with numerical derivatives. Times that are linear in the
/// parameters, as alpha + n · beta is, need one step.
namespace hcclsim::study {

struct FitParameter {
  std::string name;
  double start = 0;
  double least = 0;  ///< it does not fall below this
  double step = 0;   ///< for the derivatives
};

/// Times under these values, one per measurement.
using SimulatedTimes = std::function<std::vector<Seconds>(std::span<const double> values)>;

struct Fit {
  std::vector<double> values;    ///< of all parameters
  std::vector<bool> has_effect;  ///< whether a measured time depends on the parameter; if not it keeps its start
  std::vector<bool> at_bound;    ///< it would be smaller than `least`
};

/// Throws Error(bad_input, "log") if there are not more measurements than parameters with an effect, or if two
/// parameters have the same effect on all of them, so that only their sum could be told.
[[nodiscard]] Fit fit_times(std::span<const FitParameter> parameters, std::span<const Seconds> measured,
                            const SimulatedTimes& simulate);

}  // namespace hcclsim::study
