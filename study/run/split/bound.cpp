#include "study/run/split/bound.hpp"

#include <algorithm>
#include <cmath>
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

LowerBound lower_bound(const SplitProblem& problem, const AffineCost& cost, Objective objective) {
  const std::uint32_t n = problem.size();
  LowerBound bound;
  if (objective == Objective::communication) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const Seconds finish = problem.ready(i + 1) + cost(problem.bytes(i, n));
      if (finish > bound.time) bound = {finish, i};
    }
    return bound;
  }
  std::uint32_t first = 0;  // the i with the latest reduction of i … j
  for (std::uint32_t j = 0; j < n; ++j) {
    const auto reduced = [&](std::uint32_t i) { return problem.ready(i + 1) + cost(problem.bytes(i, j + 1)); };
    if (reduced(j) > reduced(first)) first = j;
    const Seconds step = reduced(first) + problem.followers_from(j) + problem.rest();
    if (step > bound.time) bound = {step, first};
  }
  return bound;
}

LowerBound lower_bound(const SplitProblem& problem, std::span<const AffineCost> minorants, Objective objective) {
  LowerBound best;
  for (const AffineCost& minorant : minorants) {
    const LowerBound bound = lower_bound(problem, minorant, objective);
    if (bound.time > best.time) best = bound;
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

SegmentCost interpolated(std::span<const CostPoint> points, double tolerance) {
  require_curve(points, 2);
  std::vector<CostPart> parts;
  for (std::size_t begin = 0, end = 0; begin + 1 < points.size(); begin = end) {
    AffineCost line{points[begin].time, 0};  // of a drop
    end = begin + 1;
    for (std::size_t next = end; next < points.size() && points[next].time >= points[next - 1].time; ++next) {
      const AffineCost longer = line_through(points[begin], points[next]);
      const bool meets_all = std::all_of(
          points.begin() + begin + 1, points.begin() + next,
          [&](const CostPoint& point) { return std::abs(longer(point.bytes) - point.time) <= tolerance * point.time; });
      if (!meets_all) break;
      line = longer;
      end = next;
    }
    parts.push_back({begin == 0 ? 0 : points[begin].bytes, line});
  }
  const CostPoint& last = points.back();
  if (last.time < points[points.size() - 2].time) parts.push_back({last.bytes, {last.time, 0}});
  const AffineCost first = parts.front().line;
  if (first.alpha < 0) {  // it goes on below 0
    constexpr AffineCost nothing{};
    parts.front().from = static_cast<Bytes>(std::ceil(-first.alpha / first.beta));
    parts.insert(parts.begin(), {0, nothing});
  }
  return SegmentCost(std::move(parts));
}

CriticalChain critical_chain(const SplitProblem& problem, const std::vector<SegmentTime>& timeline,
                             Objective objective) {
  auto last = timeline.end() - 1;
  CriticalChain chain;
  if (objective == Objective::step) {
    const auto step = [&](const SegmentTime& segment) { return segment.end + problem.followers_from(segment.first); };
    last = std::max_element(timeline.begin(), timeline.end(),
                            [&](const SegmentTime& a, const SegmentTime& b) { return step(a) < step(b); });
    chain.followers = problem.followers_from(last->first);
  }
  auto first = last;
  while (first != timeline.begin() && !first->waits_for_gradient) --first;
  chain.segments.assign(first, last + 1);
  return chain;
}

}  // namespace hcclsim::study
