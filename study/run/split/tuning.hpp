#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "study/run/split/bound.hpp"
#include "study/run/split/comparison.hpp"
#include "study/run/split/optimum.hpp"
#include "study/run/split/problem.hpp"
#include "study/run/split/robustness.hpp"
#include "study/run/split/shared_link.hpp"
#include "study/run/split/two_links.hpp"

/// What is to be known about the splits of a step: the best one with its certificate, the best ones for each number of
/// segments, and what others would do. Times are those of the cost that is given; whoever prints them has them
/// confirmed by simulation.
namespace hcclsim::study {

enum class CostModel : std::uint8_t {
  affine,     ///< alpha + beta · bytes, fitted to the measured sizes
  table,      ///< straight between the measured sizes
  simulated,  ///< the cost of every segment by itself
  aoe,        ///< what the vendor's tuning tool estimates (aoe_cost.hpp)
};
enum class Streams : std::uint8_t { one, two_shared, two_disjoint };

[[nodiscard]] std::string_view name_of(CostModel model);
[[nodiscard]] std::string_view name_of(Objective objective);
[[nodiscard]] std::string_view name_of(Streams streams);
/// Inverses of name_of ("affine", …; "step", "communication"; "1", "2-shared", "2-disjoint"); throw Error(bad_input,
/// "option") that lists the names.
[[nodiscard]] CostModel parse_cost_model(std::string_view name);
[[nodiscard]] Objective parse_objective(std::string_view name);
[[nodiscard]] Streams parse_streams(std::string_view name);

/// alpha and beta with the least sum of squared relative errors, both at least 0, and the largest relative error that
/// is left. Throws Error(bad_input, "split") for fewer than two points, or points without time.
struct AffineFit {
  AffineCost cost;
  double largest_error = 0;
};
[[nodiscard]] AffineFit fit_affine(std::span<const CostPoint> points);

struct TuningInput {
  SplitProblem problem;
  std::vector<Seconds> forward;    ///< forward pass of what each gradient belongs to; empty: no DeAR
  AffineCost affine;               ///< of MG-WFBP and its like
  SegmentCost cost;                ///< by which all ends are computed
  std::vector<Split> best;         ///< by the cost with at most 1, 2, … segments, or only with the most
  std::vector<CostPoint> sampled;  ///< simulated allreduces that `cost` was made of, ascending sizes
  Cuts given;                      ///< the user's split
  Cuts vendor_default;
};

struct TuningOptions {
  Aim aim;
  Streams streams = Streams::one;
  bool verify = false;  ///< try all splits, n ≤ 24
  std::vector<Strategy> compare = all_strategies();
};

struct Tuning {
  Split best;
  std::vector<NamedSplit> strategies;  ///< those of the options that are splits
  std::vector<Split> by_segments;      ///< with at most 1, 2, … segments; empty: not asked for
  std::optional<TwoLinkSplit> two_links;
  std::optional<Bracket> shared_link;
  std::optional<Split> verified;  ///< by brute force
};

/// Puts the best splits beside the others.
[[nodiscard]] Tuning tune(const TuningInput& input, const TuningOptions& options);

/// What no split beats, neither by the cost nor simulated.
struct Certificate {
  LowerBound bound;
  std::size_t sizes = 0;  ///< different ones of the allreduces that it rests on

  /// Not if a simulated split lies below it, whose allreduces take less in the step than by themselves.
  [[nodiscard]] bool holds() const { return bound.time > 0; }
};

/// `simulated`: allreduces in simulated steps, in any order. Of each size, theirs and those that were sampled, the
/// least time counts, that of the cost too; the bound is that of the affine costs below all. So the simulated steps
/// cannot end earlier, whatever else their allreduces met, nor the best split by the cost; other splits cannot where
/// their segments do not cost less than this lower hull.
[[nodiscard]] Certificate certify(const TuningInput& input, std::span<const CostPoint> simulated, Objective objective);

}  // namespace hcclsim::study
