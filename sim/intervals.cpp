#include "sim/intervals.hpp"

#include <algorithm>

namespace hcclsim::sim {

std::vector<Interval> unite(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  std::vector<Interval> united;
  for (const Interval& interval : intervals) {
    if (!united.empty() && interval.start <= united.back().end) {
      united.back().end = std::max(united.back().end, interval.end);
    } else {
      united.push_back(interval);
    }
  }
  return united;
}

Seconds length(const std::vector<Interval>& united) {
  Seconds total = 0;
  for (const Interval& interval : united) total += interval.end - interval.start;
  return total;
}

std::vector<Interval> subtract(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> rest;
  auto hole = b.begin();
  for (const Interval& interval : a) {
    Seconds start = interval.start;
    while (hole != b.end() && hole->end <= start) ++hole;
    for (auto next = hole; next != b.end() && next->start < interval.end; ++next) {
      if (next->start > start) rest.push_back({start, next->start});
      start = std::max(start, next->end);
    }
    if (start < interval.end) rest.push_back({start, interval.end});
  }
  return rest;
}

Seconds overlap(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Seconds total = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    total += std::max(0.0, std::min(a[i].end, b[j].end) - std::max(a[i].start, b[j].start));
    (a[i].end < b[j].end ? i : j)++;
  }
  return total;
}

}  // namespace hcclsim::sim
