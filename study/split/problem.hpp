#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/units.hpp"

/// The gradient split as a problem of scheduling: gradients become ready one after the other during the backward pass,
/// and one communication stream carries segments of them in order,
///
///     F_j = max(F_{j−1}, r of the last gradient of segment j) + cost of segment j,   F_0 = 0
///
/// Wanted are the cuts for which the last segment ends first. Its premises: ready times do not depend on the split,
/// segments are runs of gradients in production order, one segment is on the stream at a time.
namespace hcclsim::study {

/// The end of what cannot be reached.
inline constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

class SplitProblem {
 public:
  /// Dates at which the gradients are ready, and their bytes; both in production order and of the same, positive
  /// number. A gradient that is ready before one in front of it counts as ready with that. Throws Error(bad_input,
  /// "split") for different numbers, none, and dates that are negative or not finite.
  SplitProblem(std::span<const Seconds> ready, std::span<const Bytes> bytes);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ready_.size()); }
  /// When the first `count` gradients are ready, count ≥ 1.
  [[nodiscard]] Seconds ready(std::uint32_t count) const { return ready_[count - 1]; }
  /// End of the backward pass.
  [[nodiscard]] Seconds backward_end() const { return ready_.back(); }
  /// Bytes of the first `count` gradients.
  [[nodiscard]] Bytes bytes_before(std::uint32_t count) const { return bytes_[count]; }
  /// Bytes of the gradients begin … end−1.
  [[nodiscard]] Bytes bytes(std::uint32_t begin, std::uint32_t end) const { return bytes_[end] - bytes_[begin]; }
  [[nodiscard]] Bytes total() const { return bytes_.back(); }

 private:
  std::vector<Seconds> ready_;
  std::vector<Bytes> bytes_;  // prefix sums from 0 on
};

/// alpha + beta · bytes: every allreduce algorithm with fixed links has such a cost (spec of HCCL's formulas).
struct AffineCost {
  Seconds alpha = 0;
  double beta = 0;  ///< seconds per byte

  [[nodiscard]] Seconds operator()(Bytes bytes) const { return alpha + beta * static_cast<double>(bytes); }
};

/// Seconds that a segment of that size takes.
using Cost = std::function<Seconds(Bytes)>;

/// A cost by which splits are chosen. Where it is affine, optima take O(n) instead of O(n²).
struct SegmentCost {
  Cost cost;
  std::optional<AffineCost> affine{};  ///< the same cost, or none

  SegmentCost() = default;
  // NOLINTBEGIN(google-explicit-constructor): any cost is one
  SegmentCost(Cost any) : cost(std::move(any)) {}
  SegmentCost(const AffineCost& line) : cost(line), affine(line) {}
  // NOLINTEND(google-explicit-constructor)
  [[nodiscard]] static SegmentCost of(const AffineCost& affine) { return affine; }
};

/// Index of the last gradient of each segment, ascending, the last one size−1: what set_split_strategy_by_idx takes.
using Cuts = std::vector<std::uint32_t>;

struct Split {
  Cuts cuts;
  Seconds finish = 0;  ///< F of the last segment
};

/// A segment on the stream.
struct SegmentTime {
  std::uint32_t first = 0;  ///< gradients
  std::uint32_t last = 0;
  Bytes bytes = 0;
  Seconds start = 0;
  Seconds end = 0;
  bool waits_for_gradient = false;  ///< it begins when its last gradient is ready, otherwise when the stream is free
};

/// When each segment runs. Throws Error(bad_input, "split") for cuts that do not ascend to size−1.
[[nodiscard]] std::vector<SegmentTime> timeline(const SplitProblem& problem, const Cost& cost, const Cuts& cuts);
/// The same cuts with the end of their last segment.
[[nodiscard]] Split timed(const SplitProblem& problem, const Cost& cost, Cuts cuts);

}  // namespace hcclsim::study
