#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "study/run/split/problem.hpp"

/// The strategies that a best split is compared with, by the names under which they are asked for:
///
///     given            the split of the options
///     default          HCCL's own, 96.54 and 3.46 % of the bytes
///     single           one segment
///     each             one segment per gradient: wait-free back-propagation
///     threshold:SIZE   a segment ends with the gradient that brings it to SIZE, such as threshold:25MB
///     mgwfbp, asc      MG-WFBP, ASC-WFBP
///     dear             DeAR: reduce-scatter beside the backward pass, all-gather beside the next forward pass
///     optimal          the best split
///     by-segments      the best ones with at most 1, 2, … segments
///     lb               the lower bound
namespace hcclsim::study {

struct Strategy {
  enum class Kind : std::uint8_t {
    given,
    vendor_default,
    single,
    each,
    threshold,
    mg_wfbp,
    asc_wfbp,
    dear,
    optimal,
    by_segments,
    bound,
  };
  Kind kind = Kind::optimal;
  Bytes threshold = 0;  ///< of Kind::threshold

  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// Reads "default,threshold:25MB,optimal"; throws Error(bad_input, "option") that lists the names, for sizes that are
/// none and for a strategy that is listed twice.
[[nodiscard]] std::vector<Strategy> parse_strategies(std::string_view list);
/// All of them, with thresholds of 25 and 64 MB.
[[nodiscard]] std::vector<Strategy> all_strategies();

[[nodiscard]] bool holds(std::span<const Strategy> strategies, Strategy::Kind kind);

/// A split that somebody would choose.
struct NamedSplit {
  std::string name;
  Split split;  ///< without cuts it is no list of segments, such as DeAR's two phases; its step is not known
};

/// What the strategies work on.
struct Contest {
  const SplitProblem& problem;
  const Cost& cost;                  ///< by which all ends are computed
  const AffineCost& affine;          ///< by which MG-WFBP and its like decide
  std::span<const Seconds> forward;  ///< forward pass of what each gradient belongs to; empty: unknown, no DeAR
  const Cuts& given;
  const Cuts& vendor_default;
  const Split& optimal;
};

/// The strategies that are splits (all but by_segments and bound), in their order.
[[nodiscard]] std::vector<NamedSplit> contestants(const Contest& contest, std::span<const Strategy> strategies);

}  // namespace hcclsim::study
