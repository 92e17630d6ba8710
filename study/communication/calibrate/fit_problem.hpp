#pragma once

#include <Eigen/Dense>
#include <span>
#include <vector>

#include "study/communication/calibrate/least_squares.hpp"

/// The measured times as a problem of least squares, and the search for its least squares.
namespace hcclsim::study {

using ParameterIndices = std::vector<std::size_t>;

class FitProblem {
 public:
  FitProblem(std::span<const FitParameter> parameters, std::span<const Seconds> measured,
             const SimulatedTimes& simulate)
      : parameters_(parameters),
        measured_(Eigen::VectorXd::Map(measured.data(), static_cast<Eigen::Index>(measured.size()))),
        simulate_(simulate) {}

  [[nodiscard]] std::span<const FitParameter> parameters() const { return parameters_; }

  /// Relative errors of the simulated times.
  [[nodiscard]] Eigen::VectorXd errors(const std::vector<double>& values) const;

  /// Columns of the derivatives of the errors by these parameters, from either side; those of the others are 0.
  [[nodiscard]] Eigen::MatrixXd derivatives(const std::vector<double>& values, const ParameterIndices& of) const;

 private:
  std::span<const FitParameter> parameters_;
  Eigen::VectorXd measured_;
  const SimulatedTimes& simulate_;
};

/// How large an error usually is, from the median of all; at least 0.1 %.
[[nodiscard]] double usual_error(const Eigen::VectorXd& errors);

/// Moves these parameters to where the squares are least, outliers with less weight. Returns the errors that are left.
Eigen::VectorXd minimise_robustly(const FitProblem& problem, const ParameterIndices& free, std::vector<double>& values);

}  // namespace hcclsim::study
