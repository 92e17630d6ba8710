#include "study/split/bound.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

void require_curve(std::span<const CostPoint> points, std::size_t fewest) {
  if (points.size() < fewest) {
    bad_input("split", "a cost curve needs sizes, at least {}; {} given", fewest, points.size());
  }
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].bytes > points[i - 1].bytes) continue;
    bad_input("split", "the sizes of a cost curve must ascend; {} follows {}", points[i].bytes, points[i - 1].bytes);
  }
}

AffineCost line_through(const CostPoint& a, const CostPoint& b) {
  const double beta = (b.time - a.time) / static_cast<double>(b.bytes - a.bytes);
  return {a.time - beta * static_cast<double>(a.bytes), beta};
}

}  // namespace

LowerBound lower_bound(const SplitProblem& problem, const AffineCost& cost) {
  LowerBound bound;
  for (std::uint32_t i = 0; i < problem.size(); ++i) {
    const Seconds finish = problem.ready(i + 1) + cost(problem.bytes(i, problem.size()));
    if (finish > bound.finish) bound = {finish, i};
  }
  return bound;
}

LowerBound lower_bound(const SplitProblem& problem, std::span<const AffineCost> minorants) {
  LowerBound best;
  for (const AffineCost& minorant : minorants) {
    const LowerBound bound = lower_bound(problem, minorant);
    if (bound.finish > best.finish) best = bound;
  }
  return best;
}

std::vector<AffineCost> affine_minorants(std::span<const CostPoint> points) {
  require_curve(points, 1);
  std::vector<CostPoint> hull;
  for (const CostPoint& point : points) {
    while (hull.size() >= 2) {
      const CostPoint& before = hull[hull.size() - 2];
      if (line_through(before, hull.back()).beta < line_through(before, point).beta) break;
      hull.pop_back();
    }
    hull.push_back(point);
  }
  // Several segments pay alpha several times, and a segment may carry gradients of before: only costs whose parts are
  // both positive bound them. The flat one and the one through 0 are always there.
  AffineCost flat{points.front().time, 0};
  AffineCost through_zero{0, std::numeric_limits<double>::infinity()};
  for (const CostPoint& point : points) {
    flat.alpha = std::min(flat.alpha, point.time);
    if (point.bytes > 0) through_zero.beta = std::min(through_zero.beta, point.time / static_cast<double>(point.bytes));
  }
  std::vector<AffineCost> lines{flat};
  if (points.back().bytes > 0) lines.push_back(through_zero);
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const AffineCost line = line_through(hull[i - 1], hull[i]);
    if (line.alpha >= 0 && line.beta >= 0) lines.push_back(line);
  }
  return lines;
}

Cost interpolated(std::vector<CostPoint> points) {
  require_curve(points, 2);
  return [points = std::move(points)](Bytes bytes) {
    const auto behind = std::upper_bound(points.begin() + 1, points.end() - 1, bytes,
                                         [](Bytes size, const CostPoint& point) { return size < point.bytes; });
    return std::max(line_through(*(behind - 1), *behind)(bytes), 0.0);
  };
}

std::vector<SegmentTime> critical_chain(const std::vector<SegmentTime>& timeline) {
  auto first = timeline.end();
  while (first != timeline.begin() && !(--first)->waits_for_gradient) {
  }
  return {first, timeline.end()};
}

}  // namespace hcclsim::study
