#include "study/calibrate/least_squares.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // rows

double squares(const Vector& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

class Problem {
 public:
  Problem(std::span<const FitParameter> parameters, std::span<const Seconds> measured, const SimulatedTimes& simulate)
      : parameters_(parameters), measured_(measured), simulate_(simulate) {}

  [[nodiscard]] Vector errors(const Vector& values) const {
    Vector result = simulate_(values);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = result[i] / measured_[i] - 1;
    return result;
  }

  /// Columns of derivatives, by parameter.
  [[nodiscard]] Matrix derivatives(const Vector& values, const Vector& at) const {
    Matrix columns;
    for (std::size_t j = 0; j < parameters_.size(); ++j) {
      Vector moved = values;
      moved[j] += parameters_[j].step;
      Vector column = errors(moved);
      for (std::size_t i = 0; i < column.size(); ++i) column[i] = (column[i] - at[i]) / parameters_[j].step;
      columns.push_back(std::move(column));
    }
    return columns;
  }

 private:
  std::span<const FitParameter> parameters_;
  std::span<const Seconds> measured_;
  const SimulatedTimes& simulate_;
};

double product(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Solves the symmetric positive definite system in place, by Cholesky's method.
Vector solved(Matrix matrix, Vector right) {
  const std::size_t n = right.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) matrix[j][j] -= matrix[j][k] * matrix[j][k];
    matrix[j][j] = std::sqrt(std::max(matrix[j][j], 1e-300));
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) matrix[i][j] -= matrix[i][k] * matrix[j][k];
      matrix[i][j] /= matrix[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) right[i] -= matrix[i][k] * right[k];
    right[i] /= matrix[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) right[i] -= matrix[k][i] * right[k];
    right[i] /= matrix[i][i];
  }
  return right;
}

/// Refuses parameters that the measurements cannot tell from those before them.
void require_independent(std::span<const FitParameter> parameters, const std::vector<std::size_t>& free,
                         Matrix columns) {
  constexpr double least_part = 1e-3;  // of a column that the others do not explain
  for (std::size_t a = 0; a < free.size(); ++a) {
    Vector& column = columns[free[a]];
    const double length = std::sqrt(squares(column));
    for (std::size_t b = 0; b < a; ++b) {
      const Vector& other = columns[free[b]];  // orthogonal to those before, of length 1
      const double part = product(column, other);
      for (std::size_t i = 0; i < column.size(); ++i) column[i] -= part * other[i];
    }
    const double rest = std::sqrt(squares(column));
    if (rest < least_part * length) {
      std::vector<std::string> before;
      for (std::size_t b = 0; b < a; ++b) before.push_back(parameters[free[b]].name);
      bad_input(
          "log",
          "under-determined: the measured sizes cannot tell {} from {}; measure more and more different sizes, or "
          "say what to fit with --fit",
          parameters[free[a]].name, fmt::join(before, ", "));
    }
    for (double& value : column) value /= rest;
  }
}

/// A step from `values` with this damping, within the bounds.
Vector stepped(std::span<const FitParameter> parameters, const std::vector<std::size_t>& free, const Matrix& columns,
               const Vector& errors, const Vector& values, double damping) {
  // What is at its bound and would go beyond takes no part.
  std::vector<std::size_t> moving;
  for (const std::size_t j : free) {
    if (values[j] > parameters[j].least || product(columns[j], errors) < 0) moving.push_back(j);
  }
  Matrix normal(moving.size(), Vector(moving.size()));
  Vector right(moving.size());
  for (std::size_t a = 0; a < moving.size(); ++a) {
    for (std::size_t b = 0; b < moving.size(); ++b) normal[a][b] = product(columns[moving[a]], columns[moving[b]]);
    normal[a][a] *= 1 + damping;
    right[a] = -product(columns[moving[a]], errors);
  }
  const Vector change = solved(std::move(normal), std::move(right));
  Vector result = values;
  for (std::size_t a = 0; a < moving.size(); ++a) {
    result[moving[a]] = std::max(parameters[moving[a]].least, values[moving[a]] + change[a]);
  }
  return result;
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
  Vector errors = problem.errors(fit.values);
  Matrix columns = problem.derivatives(fit.values, errors);
  std::vector<std::size_t> free;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    fit.has_effect.push_back(std::sqrt(squares(columns[j])) * parameters[j].step > no_effect);
    if (fit.has_effect[j]) free.push_back(j);
  }
  if (measured.size() <= free.size()) {
    bad_input("log", "under-determined: {} measured sizes that are not held out, to fit {} parameters; {} are needed",
              measured.size(), free.size(), free.size() + 1);
  }
  require_independent(parameters, free, columns);
  double damping = 0;
  for (int step = 0; step < most_steps && squares(errors) > 0; ++step) {
    const Vector next = stepped(parameters, free, columns, errors, fit.values, damping);
    Vector next_errors = problem.errors(next);
    if (squares(next_errors) >= squares(errors)) {
      constexpr double first_damping = 1e-3;
      constexpr double most_damping = 1e6;
      if (damping > most_damping) break;
      damping = damping == 0 ? first_damping : damping * 10;
      continue;
    }
    const bool small = squares(errors) - squares(next_errors) <= done * squares(errors);
    fit.values = next;
    errors = std::move(next_errors);
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
