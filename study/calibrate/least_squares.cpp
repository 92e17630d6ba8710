#include "study/calibrate/least_squares.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

class Problem {
 public:
  Problem(std::span<const FitParameter> parameters, std::span<const Seconds> measured, const SimulatedTimes& simulate)
      : parameters_(parameters),
        measured_(VectorXd::Map(measured.data(), static_cast<Index>(measured.size()))),
        simulate_(simulate) {}

  [[nodiscard]] VectorXd errors(const std::vector<double>& values) const {
    const std::vector<Seconds> times = simulate_(values);
    return VectorXd::Map(times.data(), measured_.size()).array() / measured_.array() - 1;
  }

  /// Columns of derivatives, by parameter.
  [[nodiscard]] MatrixXd derivatives(const std::vector<double>& values, const VectorXd& at) const {
    MatrixXd columns(measured_.size(), values.size());
    for (std::size_t j = 0; j < values.size(); ++j) {
      std::vector<double> moved = values;
      moved[j] += parameters_[j].step;
      columns.col(static_cast<Index>(j)) = (errors(moved) - at) / parameters_[j].step;
    }
    return columns;
  }

 private:
  std::span<const FitParameter> parameters_;
  VectorXd measured_;
  const SimulatedTimes& simulate_;
};

/// Refuses parameters that the measurements cannot tell from those before them.
void require_independent(std::span<const FitParameter> parameters, const std::vector<std::size_t>& free,
                         const MatrixXd& derivatives) {
  constexpr double least_part = 1e-3;  // of a column that those before it do not explain
  const MatrixXd columns = derivatives(Eigen::all, free);
  const VectorXd rest = columns.householderQr().matrixQR().diagonal().cwiseAbs();
  std::vector<std::string> before;
  for (std::size_t a = 0; a < free.size(); ++a) {
    const auto column = static_cast<Index>(a);
    const std::string& name = parameters[free[a]].name;
    if (rest[column] < least_part * columns.col(column).norm()) {
      bad_input(
          "log",
          "under-determined: the measured sizes cannot tell {} from {}; measure more and more different sizes, or "
          "say what to fit with --fit",
          name, fmt::join(before, ", "));
    }
    before.push_back(name);
  }
}

/// A step from `values` with this damping, within the bounds.
std::vector<double> stepped(std::span<const FitParameter> parameters, const std::vector<std::size_t>& free,
                            const MatrixXd& derivatives, const VectorXd& errors, std::vector<double> values,
                            double damping) {
  // What is at its bound and would go beyond takes no part.
  std::vector<std::size_t> moving;
  for (const std::size_t j : free) {
    const double slope = derivatives.col(static_cast<Index>(j)).dot(errors);
    if (values[j] > parameters[j].least || slope < 0) moving.push_back(j);
  }
  const MatrixXd columns = derivatives(Eigen::all, moving);
  MatrixXd normal = columns.transpose() * columns;
  normal.diagonal() *= 1 + damping;
  const VectorXd change = normal.ldlt().solve(-columns.transpose() * errors);
  for (std::size_t a = 0; a < moving.size(); ++a) {
    double& value = values[moving[a]];
    value = std::max(parameters[moving[a]].least, value + change[static_cast<Index>(a)]);
  }
  return values;
}

}  // namespace

Fit fit_times(std::span<const FitParameter> parameters, std::span<const Seconds> measured,
              const SimulatedTimes& simulate) {
  constexpr double no_effect = 1e-9;  // on the sum of squares of relative changes
  constexpr int most_steps = 50;
  constexpr double done = 1e-13;
  const Problem problem(parameters, measured, simulate);
  Fit fit;
  for (const FitParameter& parameter : parameters) fit.values.push_back(parameter.start);
  VectorXd errors = problem.errors(fit.values);
  MatrixXd columns = problem.derivatives(fit.values, errors);
  std::vector<std::size_t> free;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    fit.has_effect.push_back(columns.col(static_cast<Index>(j)).norm() * parameters[j].step > no_effect);
    if (fit.has_effect[j]) free.push_back(j);
  }
  if (measured.size() <= free.size()) {
    bad_input("log", "under-determined: {} measured sizes that are not held out, to fit {} parameters; {} are needed",
              measured.size(), free.size(), free.size() + 1);
  }
  require_independent(parameters, free, columns);
  double damping = 0;
  for (int step = 0; step < most_steps && errors.squaredNorm() > 0; ++step) {
    const std::vector<double> next = stepped(parameters, free, columns, errors, fit.values, damping);
    const VectorXd next_errors = problem.errors(next);
    const double gain = errors.squaredNorm() - next_errors.squaredNorm();
    if (!(gain > 0)) {  // also if it is no number
      constexpr double first_damping = 1e-3;
      constexpr double most_damping = 1e6;
      if (damping > most_damping) break;
      damping = damping == 0 ? first_damping : damping * 10;
      continue;
    }
    const bool small = gain <= done * errors.squaredNorm();
    fit.values = next;
    errors = next_errors;
    if (small) break;
    damping = damping < 1e-6 ? 0 : damping / 10;
    columns = problem.derivatives(fit.values, errors);
  }
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    fit.at_bound.push_back(fit.has_effect[j] && fit.values[j] <= parameters[j].least);
  }
  return fit;
}

}  // namespace hcclsim::study
