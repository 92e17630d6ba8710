#include "study/run/split/tuning.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

constexpr std::array<std::string_view, 4> cost_names{"affine", "table", "simulated", "aoe"};
constexpr std::array<std::string_view, 2> objective_names{"step", "communication"};
constexpr std::array<std::string_view, 3> stream_names{"1", "2-shared", "2-disjoint"};

template <typename Enum, std::size_t size>
Enum parse(std::string_view what, std::string_view name, const std::array<std::string_view, size>& names) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<Enum>(found - names.begin());
  bad_input("option", "unknown {} '{}'; accepted: {}", what, name, fmt::join(names, " | "));
}

}  // namespace

std::string_view name_of(CostModel model) { return cost_names.at(static_cast<std::size_t>(model)); }
std::string_view name_of(Objective objective) { return objective_names.at(static_cast<std::size_t>(objective)); }
std::string_view name_of(Streams streams) { return stream_names.at(static_cast<std::size_t>(streams)); }
CostModel parse_cost_model(std::string_view name) { return parse<CostModel>("cost", name, cost_names); }
Objective parse_objective(std::string_view name) { return parse<Objective>("objective", name, objective_names); }
Streams parse_streams(std::string_view name) { return parse<Streams>("number of streams", name, stream_names); }

AffineFit fit_affine(std::span<const CostPoint> points) {
  if (points.size() < 2) bad_input("split", "a cost needs at least two measured sizes; {} given", points.size());
  // Weights 1/time² make the errors relative. With times t and sizes s: minimise Σ ((alpha + beta·s − t) / t)².
  double w = 0;
  double ws = 0;
  double wss = 0;
  double wt = 0;
  double wst = 0;
  for (const CostPoint& point : points) {
    if (!(point.time > 0)) bad_input("split", "{} bytes take {} s; a cost must be positive", point.bytes, point.time);
    const double weight = 1 / (point.time * point.time);
    const auto size = static_cast<double>(point.bytes);
    w += weight;
    ws += weight * size;
    wss += weight * size * size;
    wt += weight * point.time;
    wst += weight * size * point.time;
  }
  const double determinant = w * wss - ws * ws;
  AffineFit fit;
  if (determinant > 0) fit.cost = {(wss * wt - ws * wst) / determinant, (w * wst - ws * wt) / determinant};
  if (fit.cost.beta < 0 || determinant <= 0) fit.cost = {wt / w, 0};
  if (fit.cost.alpha < 0) fit.cost = {0, wst / wss};
  for (const CostPoint& point : points) {
    fit.largest_error = std::max(fit.largest_error, std::abs(fit.cost(point.bytes) - point.time) / point.time);
  }
  return fit;
}

namespace {

/// Every size once, ascending, with its smallest time.
class LeastTimes {
 public:
  void add(Bytes bytes, Seconds time) {
    const auto [found, is_new] = times_.try_emplace(bytes, time);
    if (!is_new) found->second = std::min(found->second, time);
  }
  [[nodiscard]] std::vector<CostPoint> points() const {
    std::vector<CostPoint> points;
    for (const auto& [bytes, time] : times_) points.push_back({bytes, time});
    return points;
  }

 private:
  std::map<Bytes, Seconds> times_;
};

/// The cost with points at what was sampled, at the smallest segment and at the largest: it is affine, straight between
/// what was sampled, or everything was sampled.
SampledCost sampled_cost(const TuningInput& input) {
  LeastTimes least;
  const auto add = [&](Bytes bytes) { least.add(bytes, input.cost.cost(bytes)); };
  Bytes smallest = input.problem.total();
  for (std::uint32_t i = 0; i < input.problem.size(); ++i) {
    smallest = std::min(smallest, input.problem.bytes(i, i + 1));
  }
  add(smallest);
  add(input.problem.total());
  for (const CostPoint& point : input.sampled) {
    if (point.bytes > smallest) add(point.bytes);
  }
  return {input.cost, least.points()};
}

}  // namespace

Tuning tune(const TuningInput& input, const TuningOptions& options) {
  const SplitProblem& problem = input.problem;
  const Aim& aim = options.aim;
  Tuning tuning;
  tuning.best = input.best.back();
  if (holds(options.compare, Strategy::Kind::by_segments)) tuning.by_segments = input.best;
  tuning.strategies = contestants({.problem = problem,
                                   .cost = input.cost.cost,
                                   .affine = input.affine,
                                   .forward = input.forward,
                                   .given = input.given,
                                   .vendor_default = input.vendor_default,
                                   .optimal = tuning.best},
                                  options.compare);
  if (options.streams == Streams::two_disjoint) {
    const SampledCost cost = sampled_cost(input);
    tuning.two_links = best_split_on_two_links(problem, cost, cost, aim.most_segments);
  } else if (options.streams == Streams::two_shared) {
    tuning.shared_link = bracket_on_shared_link(problem, sampled_cost(input), aim.most_segments);
  }
  if (options.verify) tuning.verified = brute_force(problem, input.cost.cost, aim.objective, aim.most_segments);
  return tuning;
}

Certificate certify(const TuningInput& input, std::span<const CostPoint> simulated, Objective objective) {
  LeastTimes least;
  for (const CostPoint& point : input.sampled) least.add(point.bytes, point.time);
  for (const CostPoint& point : simulated) least.add(point.bytes, point.time);
  for (const CostPoint& point : least.points()) least.add(point.bytes, input.cost.cost(point.bytes));
  const std::vector<CostPoint> points = least.points();
  return {lower_bound(input.problem, affine_minorants(points), objective), points.size()};
}

}  // namespace hcclsim::study
