#include "study/communication/calibrate/fit_problem.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <thread>

#include "base/child_process.hpp"

namespace hcclsim::study {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The largest change of a parameter in one step: speeds have no derivative left where they are far too fast.
double reach_of(const FitParameter& parameter, double value) {
  constexpr double part = 0.7;
  constexpr double units = 5;
  return std::max(part * std::abs(value), units * parameter.unit);
}

/// A step from `values` with this damping, within the bounds.
std::vector<double> stepped(const FitProblem& problem, const ParameterIndices& free, const MatrixXd& derivatives,
                            const VectorXd& errors, const std::vector<double>& values, double damping) {
  constexpr double least_damping = 1e-12;  // of what has no effect here
  const auto parameters = problem.parameters();
  // What is at its bound and would go beyond takes no part.
  ParameterIndices moving;
  for (const std::size_t j : free) {
    const double slope = derivatives.col(static_cast<Index>(j)).dot(errors);
    if (values[j] > parameters[j].least || slope < 0) moving.push_back(j);
  }
  std::vector<double> next = values;
  if (moving.empty()) return next;
  MatrixXd columns = derivatives(Eigen::all, moving);
  VectorXd scale = columns.colwise().norm();
  const double largest = scale.maxCoeff();
  if (!(largest > 0)) return next;
  scale = scale.cwiseMax(least_damping * largest);
  columns.array().rowwise() /= scale.transpose().array();
  MatrixXd normal = columns.transpose() * columns;
  normal.diagonal().array() += damping + least_damping;
  const VectorXd change = normal.ldlt().solve(-columns.transpose() * errors).cwiseQuotient(scale);
  for (std::size_t a = 0; a < moving.size(); ++a) {
    const std::size_t j = moving[a];
    const double reach = reach_of(parameters[j], values[j]);
    next[j] = std::max(parameters[j].least, values[j] + std::clamp(change[static_cast<Index>(a)], -reach, reach));
  }
  return next;
}

/// Moves the values to where the weighted squares are least.
void minimise(const FitProblem& problem, const ParameterIndices& free, const VectorXd& weights,
              std::vector<double>& values) {
  constexpr int most_steps = 60;
  constexpr double done = 1e-9;
  constexpr double first_damping = 1e-4;
  constexpr double most_damping = 1e5;
  VectorXd errors = weights.cwiseProduct(problem.errors(values));
  const auto derivatives = [&] { return MatrixXd(weights.asDiagonal() * problem.derivatives(values, free)); };
  MatrixXd columns = derivatives();
  double damping = first_damping;
  for (int step = 0; step < most_steps && errors.squaredNorm() > 0; ++step) {
    const std::vector<double> next = stepped(problem, free, columns, errors, values, damping);
    if (next == values) break;
    const VectorXd next_errors = weights.cwiseProduct(problem.errors(next));
    const double gain = errors.squaredNorm() - next_errors.squaredNorm();
    if (!(gain > 0)) {  // also if it is no number
      if (damping > most_damping) break;
      damping *= 10;
      continue;
    }
    const bool small = gain <= done * errors.squaredNorm();
    values = next;
    errors = next_errors;
    if (small) break;
    damping = std::max(damping / 10, 1e-12);
    columns = derivatives();
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Square roots of Huber's weights.
VectorXd weights_of(const VectorXd& errors) {
  constexpr double tuning = 1.345;  // 95 % efficient for normal errors (Huber)
  const double limit = tuning * usual_error(errors);
  return (limit / errors.cwiseAbs().array().max(limit)).sqrt();
}

}  // namespace

VectorXd FitProblem::errors(const std::vector<double>& values) const {
  const std::vector<Seconds> times = simulate_(values);
  return VectorXd::Map(times.data(), measured_.size()).array() / measured_.array() - 1;
}

MatrixXd FitProblem::derivatives(const std::vector<double>& values, const ParameterIndices& of) const {
  constexpr double part = 1e-2;
  /// Errors at a value on one side.
  struct Side {
    std::size_t parameter;
    double change;
    ChildOf<std::vector<Seconds>> times;
  };
  MatrixXd columns = MatrixXd::Zero(measured_.size(), static_cast<Index>(values.size()));
  std::deque<Side> running;
  std::vector<double> width(values.size(), 0);
  for (const std::size_t j : of) {
    const double change = part * std::max(std::abs(values[j]), parameters_[j].unit);
    width[j] = change + std::min(change, values[j] - parameters_[j].least);
  }
  const auto finish_first = [&] {
    Side& side = running.front();
    const std::vector<Seconds> times = side.times.result();
    const VectorXd relative = VectorXd::Map(times.data(), measured_.size()).cwiseQuotient(measured_);
    columns.col(static_cast<Index>(side.parameter)) += (side.change > 0 ? 1 : -1) / width[side.parameter] * relative;
    running.pop_front();
  };
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  for (const std::size_t j : of) {
    const double up = part * std::max(std::abs(values[j]), parameters_[j].unit);
    for (const double change : {up, up - width[j]}) {
      if (running.size() == most) finish_first();
      std::vector<double> moved = values;
      moved[j] += change;
      running.push_back({j, change > 0 ? 1.0 : -1.0,
                         ChildOf<std::vector<Seconds>>([this, moved = std::move(moved)] { return simulate_(moved); })});
    }
  }
  while (!running.empty()) finish_first();
  return columns;
}

double usual_error(const VectorXd& errors) {
  constexpr double of_median = 1.4826;  // the standard deviation of normal errors
  constexpr double least = 1e-3;        // below which nothing is an outlier
  const VectorXd sizes = errors.cwiseAbs();
  return std::max(least, of_median * median({sizes.begin(), sizes.end()}));
}

VectorXd minimise_robustly(const FitProblem& problem, const ParameterIndices& free, std::vector<double>& values) {
  constexpr int most_rounds = 12;
  constexpr double settled = 1e-6;
  VectorXd errors = problem.errors(values);
  VectorXd weights = VectorXd::Ones(errors.size());
  for (int round = 0; round < most_rounds && !free.empty(); ++round) {
    minimise(problem, free, weights, values);
    errors = problem.errors(values);
    const VectorXd next = weights_of(errors);
    const bool same = (next - weights).cwiseAbs().maxCoeff() < settled;
    weights = next;
    if (same) break;
  }
  return errors;
}

}  // namespace hcclsim::study
