#include "study/calibrate/least_squares.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

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

  /// Columns of derivatives of these parameters; those of the others are 0.
  [[nodiscard]] MatrixXd derivatives(const std::vector<double>& values, const VectorXd& at,
                                     const std::vector<std::size_t>& of) const {
    MatrixXd columns = MatrixXd::Zero(measured_.size(), static_cast<Index>(values.size()));
    for (const std::size_t j : of) {
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

/// The parameters that the measurements tell apart, first ones first, but for those that are at their bounds; sets the
/// states of all.
std::vector<std::size_t> told_apart(std::span<const FitParameter> parameters, const MatrixXd& derivatives,
                                    const std::set<std::size_t>& at_bounds, Fit& fit) {
  constexpr double no_effect = 1e-9;   // on the sum of squares of relative changes
  constexpr double least_part = 1e-2;  // of a column that those before it do not explain
  constexpr double much = 0.1;         // of the largest share in what explains a column
  fit.states.assign(parameters.size(), FitState::fitted);
  fit.alike.assign(parameters.size(), {});
  std::vector<std::size_t> free;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    if (at_bounds.contains(j)) {
      fit.states[j] = FitState::at_least;
      continue;
    }
    const VectorXd column = derivatives.col(static_cast<Index>(j));
    if (column.norm() * parameters[j].step <= no_effect) {
      fit.states[j] = FitState::no_effect;
      continue;
    }
    if (!free.empty()) {
      const MatrixXd before = derivatives(Eigen::all, free);
      const VectorXd shares = before.colPivHouseholderQr().solve(column);
      if ((column - before * shares).norm() < least_part * column.norm()) {
        fit.states[j] = FitState::not_told_apart;
        const VectorXd effects = (before * shares.asDiagonal()).colwise().norm();
        for (std::size_t a = 0; a < free.size(); ++a) {
          if (effects[static_cast<Index>(a)] >= much * effects.maxCoeff())
            fit.alike[j].push_back(parameters[free[a]].name);
        }
        continue;
      }
    }
    free.push_back(j);
  }
  return free;
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

/// Moves the values to where the weighted squares are least.
void minimise(const Problem& problem, std::span<const FitParameter> parameters, const std::vector<std::size_t>& free,
              const VectorXd& weights, std::vector<double>& values) {
  constexpr int most_steps = 50;
  constexpr double done = 1e-13;
  VectorXd errors = weights.cwiseProduct(problem.errors(values));
  const auto derivatives = [&] {
    const MatrixXd columns = problem.derivatives(values, errors.cwiseQuotient(weights), free);
    return MatrixXd(weights.asDiagonal() * columns);
  };
  MatrixXd columns = derivatives();
  double damping = 0;
  for (int step = 0; step < most_steps && errors.squaredNorm() > 0; ++step) {
    const std::vector<double> next = stepped(parameters, free, columns, errors, values, damping);
    const VectorXd next_errors = weights.cwiseProduct(problem.errors(next));
    const double gain = errors.squaredNorm() - next_errors.squaredNorm();
    if (!(gain > 0)) {  // also if it is no number
      constexpr double first_damping = 1e-3;
      constexpr double most_damping = 1e6;
      if (damping > most_damping) break;
      damping = damping == 0 ? first_damping : damping * 10;
      continue;
    }
    const bool small = gain <= done * errors.squaredNorm();
    values = next;
    errors = next_errors;
    if (small) break;
    damping = damping < 1e-6 ? 0 : damping / 10;
    columns = derivatives();
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// How large an error usually is, from the median of all.
double usual_error(const VectorXd& errors) {
  constexpr double of_median = 1.4826;  // the standard deviation of normal errors
  constexpr double least = 1e-3;        // below which nothing is an outlier
  const VectorXd sizes = errors.cwiseAbs();
  return std::max(least, of_median * median({sizes.begin(), sizes.end()}));
}

/// Square roots of Huber's weights.
VectorXd weights_of(const VectorXd& errors) {
  constexpr double tuning = 1.345;  // 95 % efficient for normal errors (Huber)
  const double limit = tuning * usual_error(errors);
  return (limit / errors.cwiseAbs().array().max(limit)).sqrt();
}

/// Fits these parameters, outliers with less weight; returns the errors that are left.
VectorXd fit_robustly(const Problem& problem, std::span<const FitParameter> parameters,
                      const std::vector<std::size_t>& free, std::vector<double>& values) {
  constexpr int most_rounds = 12;
  constexpr double settled = 1e-9;
  VectorXd errors = problem.errors(values);
  VectorXd weights = VectorXd::Ones(errors.size());
  for (int round = 0; round < most_rounds && !free.empty(); ++round) {
    minimise(problem, parameters, free, weights, values);
    errors = problem.errors(values);
    const VectorXd next = weights_of(errors);
    const bool same = (next - weights).cwiseAbs().maxCoeff() < settled;
    weights = next;
    if (same) break;
  }
  return errors;
}

/// The first parameter at its bound in whose place another one could be fitted, which has the same effect.
std::optional<std::size_t> blocking(std::span<const FitParameter> parameters, const std::vector<std::size_t>& free,
                                    const Fit& fit) {
  for (const std::size_t j : free) {
    if (fit.values[j] > parameters[j].least) continue;
    for (const std::vector<std::string>& alike : fit.alike) {
      if (std::find(alike.begin(), alike.end(), parameters[j].name) != alike.end()) return j;
    }
  }
  return std::nullopt;
}

}  // namespace

Fit fit_times(std::span<const FitParameter> parameters, std::span<const Seconds> measured,
              const SimulatedTimes& simulate) {
  constexpr double far_off = 5;  // usual errors
  const Problem problem(parameters, measured, simulate);
  Fit fit;
  std::vector<std::size_t> all;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    fit.values.push_back(parameters[j].start);
    all.push_back(j);
  }
  VectorXd errors;
  std::vector<std::size_t> free;
  std::set<std::size_t> at_bounds;
  for (std::optional<std::size_t> blocked; errors.size() == 0 || blocked.has_value();) {
    if (blocked.has_value()) at_bounds.insert(*blocked);
    errors = problem.errors(fit.values);
    free = told_apart(parameters, problem.derivatives(fit.values, errors, all), at_bounds, fit);
    if (measured.size() <= free.size()) {
      bad_input("log", "under-determined: {} measured sizes that are not held out, to fit {} parameters; {} are needed",
                measured.size(), free.size(), free.size() + 1);
    }
    errors = fit_robustly(problem, parameters, free, fit.values);
    blocked = blocking(parameters, free, fit);
  }
  const double usual = usual_error(errors);
  for (const double error : errors) fit.outliers.push_back(std::abs(error) > far_off * usual);
  for (const std::size_t j : free) {
    if (fit.values[j] <= parameters[j].least) fit.states[j] = FitState::at_least;
  }
  return fit;
}

}  // namespace hcclsim::study
