#pragma once

#include <vector>

#include "base/units.hpp"

/// Sets of dates as sorted, disjoint intervals: busy times of streams and their overlap.
namespace hcclsim::sim {

struct Interval {
  Seconds start = 0;
  Seconds end = 0;
  [[nodiscard]] Seconds length() const { return end - start; }
};

/// The union of any intervals.
[[nodiscard]] std::vector<Interval> unite(std::vector<Interval> intervals);
/// Total length of a union.
[[nodiscard]] Seconds length(const std::vector<Interval>& united);
/// What is in the union `a` and not in the union `b`.
[[nodiscard]] std::vector<Interval> subtract(const std::vector<Interval>& a, const std::vector<Interval>& b);
/// Length of what two unions have in common.
[[nodiscard]] Seconds overlap(const std::vector<Interval>& a, const std::vector<Interval>& b);

}  // namespace hcclsim::sim
