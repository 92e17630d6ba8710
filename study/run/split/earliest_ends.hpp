#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "study/run/split/problem.hpp"

/// The recurrence behind study/run/split/optimum.hpp, row by row.
namespace hcclsim::study {

/// Earliest ends of the first b gradients, b = 0 … n, with at most so many segments as the row's number.
struct Row {
  /// The row before has the same end.
  static constexpr std::uint32_t as_before = std::numeric_limits<std::uint32_t>::max();

  std::vector<Seconds> end;         ///< never: no such split
  std::vector<std::uint32_t> from;  ///< where the last segment begins, or as_before
};
using Rows = std::vector<Row>;  ///< the first one is that of no segment

class EarliestEnds {
 public:
  /// Refers to both.
  EarliestEnds(const SplitProblem& problem, const SegmentCost& cost);

  /// Of the splits of at most 0, 1, …, `segments` segments.
  [[nodiscard]] Rows rows(std::uint32_t segments) const;
  /// Of those whose steps, without rest, end by `limit`; up to the first number of segments with which one does.
  [[nodiscard]] Rows rows_until_kept(std::uint32_t segments, Seconds limit) const;
  /// The same for that number of segments, the last of which is that of `last`.
  [[nodiscard]] Rows rows_with_last(std::uint32_t segments, Seconds limit, const EarliestEnds& last) const;
  /// The split that gives the last end of a row.
  [[nodiscard]] Split split_of(const Rows& rows, std::size_t row) const;
  /// Of the splits of so many segments that end their communication as early as that row says, and their steps by
  /// `limit`, both up to rounding: from the last segment back each begins where it has the most time to spare.
  [[nodiscard]] Split slackest_split(const Rows& rows, std::uint32_t segments, Seconds limit) const;
  /// Of the splits of any number of segments whose steps, without rest, end by `limit`, one that ends its communication
  /// first; none if there is no such split.
  [[nodiscard]] std::optional<Split> any_number(Seconds limit) const;

 private:
  [[nodiscard]] Rows none() const;
  void add_row(Rows& rows, Seconds limit) const;
  [[nodiscard]] Seconds least_cost_from(Bytes bytes) const;
  void extend(const Row& source, Row& to, Seconds limit) const;
  void extend_by_parts(const Row& source, Row& to, Seconds limit) const;
  void extend_any(const Row& source, Row& to, Seconds limit) const;

  const SplitProblem& problem_;
  const SegmentCost& cost_;
  bool parts_rise_;
  std::vector<Seconds> least_from_;  // the least cost from each part on
};

}  // namespace hcclsim::study
