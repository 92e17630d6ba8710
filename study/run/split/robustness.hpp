#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "study/run/split/problem.hpp"

/// How far a split that was chosen for one set of ready times and one bandwidth stays the best for others. A split's
/// regret is how much later it ends, by the objective, than the best one of up to that number of segments.
namespace hcclsim::study {

/// Among which splits the best is sought, and what is to be least.
struct Aim {
  std::uint32_t most_segments = 8;
  Objective objective = Objective::step;
};

struct Regret {
  Seconds end = 0;       ///< of the split, by the objective
  Seconds best_end = 0;  ///< of the best one under the same circumstances
  Cuts best;

  [[nodiscard]] Seconds time() const { return end - best_end; }
  /// As a fraction of the best end.
  [[nodiscard]] double fraction() const { return best_end > 0 ? time() / best_end : 0; }
  /// No split ends earlier, up to rounding.
  [[nodiscard]] bool none() const;
};

[[nodiscard]] Regret regret_of(const Cuts& cuts, const SplitProblem& problem, const SegmentCost& cost, const Aim& aim);

/// What becomes of a split in steps whose gradients are ready at other dates.
struct JitterOutcome {
  std::uint32_t draws = 0;
  std::uint32_t optimal = 0;  ///< of them, those without regret
  Seconds mean_regret = 0;
  Seconds worst_regret = 0;
  double worst_fraction = 0;  ///< of the best end, in the draw where that is largest
};

/// `problem(draw)`: with the dates of the gradients in that draw.
[[nodiscard]] JitterOutcome under_jitter(const Cuts& cuts, const SegmentCost& cost, const Aim& aim, std::uint32_t draws,
                                         const std::function<SplitProblem(std::uint32_t)>& problem);

/// The cost of a segment as a function of the bandwidth, given at some factors on it. Between two of them it is
/// straight in 1 / factor: exact where the bytes of a segment pass links that all have the factor, since a time is then
/// alpha + bytes / (factor · bandwidth).
class CostOverBandwidth {
 public:
  struct Point {
    double factor = 1;
    SegmentCost cost;
  };
  /// At least two factors above 0, ascending; costs all of straight parts or none. Throws Error(bad_input, "split")
  /// otherwise.
  explicit CostOverBandwidth(std::vector<Point> points);

  /// `factor` lies between the first and the last one. The cost may refer to this object.
  [[nodiscard]] SegmentCost at(double factor) const;
  [[nodiscard]] double lowest() const { return points_.front().factor; }
  [[nodiscard]] double highest() const { return points_.back().factor; }

 private:
  std::vector<Point> points_;
};

/// Where a split has no regret.
struct BandwidthInterval {
  double from = 1;  ///< factors on the bandwidth
  double to = 1;
  Cuts cuts;
};

/// The whole range in intervals, ascending, each with a split that is the best in all of it. `chosen` has an interval
/// if it is the best at `at`, a factor of the range: from there on intervals go as far as their splits do. The range is
/// searched in steps of a hundredth of its logarithm; where a split stops being the best is found by bisection to 1e-9.
/// What is the best for less than a step may be missed.
[[nodiscard]] std::vector<BandwidthInterval> best_over_bandwidth(const SplitProblem& problem,
                                                                 const CostOverBandwidth& costs, const Aim& aim,
                                                                 const Cuts& chosen, double at);

}  // namespace hcclsim::study
