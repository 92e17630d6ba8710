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
/// What follows the reduction of a gradient, its update, runs in a stream of its own, in the order of gradients. So the
/// step ends at
///
///     T = max over segments j of (F_j + what follows the gradients from the first one of j on) + rest
///
/// Wanted are the cuts with the least T, or with the least F of the last segment. The premises: ready times and what
/// follows do not depend on the split, segments are runs of gradients in production order, one segment is on the stream
/// at a time.
namespace hcclsim::study {

/// The end of what cannot be reached.
inline constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

/// What is to be least.
enum class Objective : std::uint8_t {
  step,           ///< T, the end of the step
  communication,  ///< the end of the last segment
};

/// What runs once gradients are reduced, and does not depend on the split.
struct Followers {
  std::vector<Seconds> of_gradients{};  ///< after each gradient's segment, production order; empty: none
  Seconds rest = 0;                     ///< after all of them
};

class SplitProblem {
 public:
  /// Dates at which the gradients are ready, and their bytes; both in production order and of the same, positive
  /// number. A gradient that is ready before one in front of it counts as ready with that. Throws Error(bad_input,
  /// "split") for different numbers, none, and times that are negative or not finite.
  SplitProblem(std::span<const Seconds> ready, std::span<const Bytes> bytes, const Followers& followers = {});

  /// The same with other dates.
  [[nodiscard]] SplitProblem with_ready(std::span<const Seconds> ready) const;
  /// The same with nothing that follows everything.
  [[nodiscard]] SplitProblem without_rest() const;

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
  /// Time of what follows the gradients begin … n−1.
  [[nodiscard]] Seconds followers_from(std::uint32_t begin) const { return following_[begin]; }
  /// Time of what follows everything.
  [[nodiscard]] Seconds rest() const { return rest_; }

 private:
  void set_ready(std::span<const Seconds> ready);

  std::vector<Seconds> ready_;
  std::vector<Bytes> bytes_;        // prefix sums from 0 on
  std::vector<Seconds> following_;  // suffix sums, the last one 0
  Seconds rest_ = 0;
};

/// alpha + beta · bytes: every allreduce algorithm with fixed links has such a cost (docs/algorithms.md).
struct AffineCost {
  Seconds alpha = 0;
  double beta = 0;  ///< seconds per byte

  [[nodiscard]] Seconds operator()(Bytes bytes) const { return alpha + beta * static_cast<double>(bytes); }
};

/// Seconds that a segment of that size takes.
using Cost = std::function<Seconds(Bytes)>;

/// A part of a cost that is straight: from a size on, up to that of the next part.
struct CostPart {
  Bytes from = 0;
  AffineCost line;
};

/// A cost by which splits are chosen. What is known of its form makes the search fast: O(n · parts) instead of O(n²).
struct SegmentCost {
  Cost cost;
  std::vector<CostPart> parts{};  ///< the same cost, ascending from 0 on; empty: any cost

  SegmentCost() = default;
  // NOLINTBEGIN(google-explicit-constructor): any cost is one
  SegmentCost(Cost any) : cost(std::move(any)) {}
  SegmentCost(const AffineCost& line) : cost(line), parts{{0, line}} {}
  // NOLINTEND(google-explicit-constructor)
  /// Needs a part from 0 on.
  explicit SegmentCost(std::vector<CostPart> parts);
  [[nodiscard]] static SegmentCost of(const AffineCost& affine) { return affine; }

  /// The line, if the cost is one; null otherwise.
  [[nodiscard]] const AffineCost* affine() const { return parts.size() == 1 ? &parts.front().line : nullptr; }
  /// Every segment takes that much longer.
  [[nodiscard]] SegmentCost plus(Seconds more) const;
  /// Index of the part that holds that size.
  [[nodiscard]] std::size_t part_of(Bytes bytes) const;
  /// Whether there are parts, and more bytes never cost less within one.
  [[nodiscard]] bool parts_rise() const;
};

/// Index of the last gradient of each segment, ascending, the last one size−1: what set_split_strategy_by_idx takes.
using Cuts = std::vector<std::uint32_t>;

struct Split {
  Cuts cuts;
  Seconds finish = 0;  ///< F of the last segment
  Seconds step = 0;    ///< T

  [[nodiscard]] Seconds time(Objective objective) const { return objective == Objective::step ? step : finish; }
};

/// A segment on the stream.
struct SegmentTime {
  std::uint32_t first = 0;  ///< gradients
  std::uint32_t last = 0;
  Bytes bytes = 0;
  Seconds start = 0;
  Seconds end = 0;
  Seconds followed = 0;             ///< end of what follows its gradients
  bool waits_for_gradient = false;  ///< it begins when its last gradient is ready, otherwise when the stream is free
};

/// When each segment runs. Throws Error(bad_input, "split") for cuts that do not ascend to size−1.
[[nodiscard]] std::vector<SegmentTime> timeline(const SplitProblem& problem, const Cost& cost, const Cuts& cuts);
/// The same cuts with their times.
[[nodiscard]] Split timed(const SplitProblem& problem, const Cost& cost, Cuts cuts);

}  // namespace hcclsim::study
