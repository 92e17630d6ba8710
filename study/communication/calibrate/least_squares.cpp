#include "study/communication/calibrate/least_squares.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/error.hpp"
#include "study/communication/calibrate/fit_problem.hpp"

namespace hcclsim::study {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The largest standard error with which a parameter is told.
double limit_of(const FitParameter& parameter, double value) {
  constexpr double part = 0.25;
  return std::max(part * std::abs(value), parameter.told);
}

/// Decides at the end of a fit which parameters the times tell.
class Judge {
 public:
  Judge(const FitProblem& problem, const VectorXd& errors, const std::vector<double>& values)
      : parameters_(problem.parameters()), values_(values) {
    constexpr double least_noise = 5e-3;
    noise_ = std::max(least_noise, usual_error(errors));
    ParameterIndices all;
    for (std::size_t j = 0; j < values.size(); ++j) all.push_back(j);
    derivatives_ = problem.derivatives(values, all);
  }

  [[nodiscard]] bool has_effect(std::size_t j) const {
    return noise_ <= limit_of(parameters_[j], values_[j]) * column(j).norm();
  }
  /// Standard errors of parameters that are fitted together; none if they are not all determined.
  [[nodiscard]] std::optional<VectorXd> standard_errors(const ParameterIndices& fitted) const {
    MatrixXd columns = derivatives_(Eigen::all, fitted);
    const VectorXd scale = columns.colwise().norm();
    columns.array().rowwise() /= scale.transpose().array();
    const MatrixXd normal = columns.transpose() * columns;
    const Eigen::FullPivLU<MatrixXd> solver(normal);
    if (!solver.isInvertible()) return std::nullopt;
    return noise_ * solver.inverse().diagonal().cwiseMax(0).cwiseSqrt().cwiseQuotient(scale);
  }
  [[nodiscard]] bool all_told(const ParameterIndices& fitted) const {
    const std::optional<VectorXd> errors = standard_errors(fitted);
    if (!errors.has_value()) return false;
    for (std::size_t a = 0; a < fitted.size(); ++a) {
      const std::size_t j = fitted[a];
      if ((*errors)[static_cast<Index>(a)] > limit_of(parameters_[j], values_[j])) return false;
    }
    return true;
  }
  /// Those of the fitted whose effects together are that of `j`.
  [[nodiscard]] std::vector<std::string> alike(std::size_t j, const ParameterIndices& fitted) const {
    constexpr double much = 0.1;  // of the largest share
    if (fitted.empty()) return {};
    const MatrixXd others = derivatives_(Eigen::all, fitted);
    const VectorXd shares = others.colPivHouseholderQr().solve(column(j));
    const VectorXd effects = (others * shares.asDiagonal()).colwise().norm();
    std::vector<std::string> names;
    for (std::size_t a = 0; a < fitted.size(); ++a) {
      if (effects[static_cast<Index>(a)] >= much * effects.maxCoeff()) names.push_back(parameters_[fitted[a]].name);
    }
    return names;
  }
  /// Whether a time changes by more than a thousandth when the parameter changes by what it is told by.
  [[nodiscard]] bool depends(std::size_t measurement, std::size_t j) const {
    constexpr double visible = 1e-3;
    const double slope = derivatives_(static_cast<Index>(measurement), static_cast<Index>(j));
    return std::abs(slope) * limit_of(parameters_[j], values_[j]) > visible;
  }

  /// Whether any time depends on it.
  [[nodiscard]] bool is_visible(std::size_t j) const {
    for (Index i = 0; i < derivatives_.rows(); ++i) {
      if (depends(static_cast<std::size_t>(i), j)) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] VectorXd column(std::size_t j) const { return derivatives_.col(static_cast<Index>(j)); }

  std::span<const FitParameter> parameters_;
  const std::vector<double>& values_;
  double noise_ = 0;
  MatrixXd derivatives_;
};

/// Sets the states of all parameters, of those that are still free; returns those that stay so.
ParameterIndices judged(const Judge& judge, std::span<const FitParameter> parameters, const ParameterIndices& free,
                        Fit& fit) {
  ParameterIndices told;
  ParameterIndices staying;
  for (const std::size_t j : free) {
    if (fit.values[j] <= parameters[j].least && judge.is_visible(j)) {
      fit.states[j] = FitState::at_least;
      staying.push_back(j);
      continue;
    }
    if (!judge.has_effect(j)) {
      fit.states[j] = FitState::no_effect;
      continue;
    }
    told.push_back(j);
    if (judge.all_told(told)) {
      fit.states[j] = FitState::fitted;
      staying.push_back(j);
      continue;
    }
    told.pop_back();
    fit.states[j] = FitState::not_told_apart;
    fit.alike[j] = judge.alike(j, told);
  }
  return staying;
}

/// Values to start from beside the platform's.
std::vector<std::vector<double>> other_starts(std::span<const FitParameter> parameters, const ParameterIndices& free,
                                              const std::vector<double>& first) {
  std::vector<std::vector<double>> starts;
  std::size_t most = 0;
  for (const std::size_t j : free) most = std::max(most, parameters[j].others.size());
  for (std::size_t number = 0; number < most; ++number) {
    std::vector<double>& start = starts.emplace_back(first);
    for (const std::size_t j : free) {
      if (number < parameters[j].others.size()) start[j] = parameters[j].others[number];
    }
  }
  for (const std::size_t j : free) {
    if (parameters[j].alone.has_value()) starts.emplace_back(first)[j] = *parameters[j].alone;
  }
  return starts;
}

/// The best end of fits from all starts, up to one that is good enough.
VectorXd fit_from_all(const FitProblem& problem, const ParameterIndices& free, std::vector<double>& values) {
  constexpr double good = 2e-3;
  const std::vector<double> first = values;
  VectorXd errors = minimise_robustly(problem, free, values);
  for (std::vector<double>& other : other_starts(problem.parameters(), free, first)) {
    if (errors.cwiseAbs().mean() < good) break;
    const VectorXd other_errors = minimise_robustly(problem, free, other);
    if (other_errors.cwiseAbs().mean() < errors.cwiseAbs().mean()) {
      values = other;
      errors = other_errors;
    }
  }
  return errors;
}

/// Sum of Huber's losses, in units of the squared noise.
double loss(const VectorXd& errors, double noise) {
  constexpr double tuning = 1.345;
  const auto sizes = errors.cwiseAbs().array() / noise;
  return (sizes < tuning).select(sizes.square(), 2 * tuning * sizes - tuning * tuning).sum();
}

/// A parameter that was moved though the others fit the times as well where it stays at its start: another place of the
/// same valley, or of another one. The least important one; none: all moves were needed.
std::optional<std::size_t> needless(const FitProblem& problem, const Judge& judge, const ParameterIndices& free,
                                    const VectorXd& errors, const std::vector<double>& start, Fit& fit) {
  constexpr double least_noise = 2e-3;
  constexpr double visible = 1e-2;   // of a move
  constexpr double significant = 4;  // two standard errors, squared
  const auto parameters = problem.parameters();
  const double noise = std::max(least_noise, usual_error(errors));
  const double best = loss(errors, noise);
  for (auto it = free.rbegin(); it != free.rend(); ++it) {
    const std::size_t j = *it;
    const double moved = std::abs(fit.values[j] - start[j]);
    const bool confirmed = moved < 3 * fit.errors[j] && fit.errors[j] < 0.2 * limit_of(parameters[j], fit.values[j]);
    if (fit.states[j] != FitState::fitted || confirmed || moved < visible * parameters[j].unit) continue;
    ParameterIndices others = free;
    std::erase(others, j);
    std::vector<double> values = fit.values;
    values[j] = start[j];
    if (loss(minimise_robustly(problem, others, values), noise) > best + significant) continue;
    fit.states[j] = FitState::not_told_apart;
    fit.alike[j] = judge.alike(j, others);
    return j;
  }
  return std::nullopt;
}

/// A parameter that cannot take part (it is at its bound, or hardly matters) though another one stays at its start for
/// not being told from it, which could take part in its place.
std::optional<std::size_t> blocking(std::span<const FitParameter> parameters, const ParameterIndices& settled,
                                    const Fit& fit) {
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const bool out = fit.states[j] == FitState::at_least || fit.states[j] == FitState::no_effect;
    if (!out || std::find(settled.begin(), settled.end(), j) != settled.end()) continue;
    for (const std::vector<std::string>& alike : fit.alike) {
      if (std::find(alike.begin(), alike.end(), parameters[j].name) != alike.end()) return j;
    }
  }
  return std::nullopt;
}

/// Fits as many of the free parameters as the times tell. `start`: values of those that do not take part.
Fit fit_told(const FitProblem& problem, ParameterIndices free, const std::vector<double>& start) {
  constexpr double far_off = 5;  // usual errors
  const auto parameters = problem.parameters();
  Fit fit;
  fit.states.assign(parameters.size(), FitState::no_effect);
  fit.alike.resize(parameters.size());
  while (true) {
    fit.values = start;
    fit.errors.assign(parameters.size(), 0);
    const VectorXd errors = fit_from_all(problem, free, fit.values);
    const Judge judge(problem, errors, fit.values);
    const ParameterIndices staying = judged(judge, parameters, free, fit);
    if (staying.size() < free.size()) {
      free = staying;
      continue;
    }
    ParameterIndices inner;
    for (const std::size_t j : free) {
      if (fit.states[j] == FitState::fitted) inner.push_back(j);
    }
    if (const auto found = judge.standard_errors(inner); found.has_value()) {
      for (std::size_t a = 0; a < inner.size(); ++a) fit.errors[inner[a]] = (*found)[static_cast<Index>(a)];
    }
    if (const auto dropped = needless(problem, judge, free, errors, start, fit); dropped.has_value()) {
      std::erase(free, *dropped);
      continue;
    }
    const auto measured = static_cast<std::size_t>(errors.size());
    if (measured <= inner.size()) {
      bad_input("log", "under-determined: {} measured sizes that are not held out, to fit {} parameters; {} are needed",
                measured, inner.size(), inner.size() + 1);
    }
    fit.far_off = far_off * usual_error(errors);
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      std::vector<bool>& depends = fit.depends.emplace_back();
      for (std::size_t i = 0; i < measured; ++i) depends.push_back(judge.depends(i, j));
    }
    return fit;
  }
}

}  // namespace

Fit fit_times(std::span<const FitParameter> parameters, std::span<const Seconds> measured,
              const SimulatedTimes& simulate) {
  const FitProblem problem(parameters, measured, simulate);
  std::vector<double> start;
  ParameterIndices all;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    start.push_back(parameters[j].start);
    all.push_back(j);
  }
  ParameterIndices settled;
  std::vector<FitState> states(parameters.size(), FitState::no_effect);  // of those that are settled
  while (true) {
    ParameterIndices free;
    std::set_difference(all.begin(), all.end(), settled.begin(), settled.end(), std::back_inserter(free));
    Fit fit = fit_told(problem, free, start);
    for (const std::size_t j : settled) fit.states[j] = states[j];
    const std::optional<std::size_t> blocked = blocking(parameters, settled, fit);
    if (!blocked.has_value()) return fit;
    states[*blocked] = fit.states[*blocked];
    if (fit.states[*blocked] == FitState::at_least) start[*blocked] = parameters[*blocked].least;
    settled.insert(std::upper_bound(settled.begin(), settled.end(), *blocked), *blocked);
  }
}

}  // namespace hcclsim::study
