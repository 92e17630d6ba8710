#include "study/run/split_search/simulations.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "study/run/split/tuning.hpp"
#include "study/run/split_search/cost_curve.hpp"

namespace hcclsim::study {
namespace {

/// Every size that a segment can have, ascending.
std::vector<Bytes> segment_sizes(const SplitProblem& problem) {
  constexpr std::size_t most = 50'000;
  std::vector<Bytes> sizes;
  for (std::uint32_t end = 1; end <= problem.size(); ++end) {
    for (std::uint32_t begin = 0; begin < end; ++begin) sizes.push_back(problem.bytes(begin, end));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.size() > most) {
    bad_input("option", "--cost simulated: {} different segments to simulate; up to {}, give --cost table",
              with_thousands(sizes.size()), with_thousands(most));
  }
  return sizes;
}

Cost looked_up(std::vector<CostPoint> points) {
  return [points = std::move(points)](Bytes bytes) {
    const auto found = std::lower_bound(points.begin(), points.end(), bytes,
                                        [](const CostPoint& point, Bytes wanted) { return point.bytes < wanted; });
    if (found == points.end() || found->bytes != bytes) internal_error("a segment of {} bytes has no cost", bytes);
    return found->time;
  };
}

}  // namespace

ChildOf<SimulatedStep> start_step(Experiment& run, hccl::TrainingStep training) {
  return ChildOf<SimulatedStep>([&run, training = std::move(training)] {
    const hccl::TimedStep step = run.simulate(training);
    const auto view = hccl::StepView::of(step.plan, step.trace, training.simulation.rank);
    const Seconds step_time = step.step_times[training.simulation.rank];
    SimulatedStep simulated{view.gradient_ready, view.bp_end, {}, step_time, simulated_phases(view, step_time)};
    for (const hccl::SegmentFigures& segment : view.segments) {
      const bool waited = step.bottlenecks[segment.collective].kind == hccl::BottleneckKind::late_rank;
      simulated.segments.push_back({segment.start, segment.end, waited});
    }
    return simulated;
  });
}

std::map<sim::LinkKind, sim::LinkAdjustment> adjustments_of(const sim::Cluster& cluster,
                                                            const BandwidthFactor& bandwidth) {
  std::map<sim::LinkKind, sim::LinkAdjustment> adjustments;
  for (const sim::Link& link : cluster.links()) {
    if (!bandwidth.kind.has_value() || link.kind == *bandwidth.kind) {
      adjustments[link.kind].bandwidth = bandwidth.factor;
    }
  }
  return adjustments;
}

ChildOf<std::vector<CostPoint>> start_costs(Experiment& run, std::vector<Bytes> sizes, BandwidthFactor bandwidth) {
  return ChildOf<std::vector<CostPoint>>([&run, sizes = std::move(sizes), bandwidth] {
    run.cluster.adjust(adjustments_of(run.cluster, bandwidth));
    return simulate_costs(run.cluster, run.soc, run.costs, run.training, run.program->gradient_type(), sizes);
  });
}

std::vector<Bytes> cost_sizes(CostModel model, const SplitProblem& problem) {
  constexpr std::size_t curve_sizes = 29;
  return model == CostModel::simulated ? segment_sizes(problem) : sizes_up_to(problem.total(), curve_sizes);
}

SegmentCost segment_cost(CostModel model, const std::vector<CostPoint>& points) {
  switch (model) {
    case CostModel::affine:
      return SegmentCost::of(fit_affine(points).cost);
    case CostModel::table:
      return interpolated(points, table_tolerance);
    case CostModel::simulated:
      return {looked_up(points)};
    case CostModel::aoe:
      internal_error("AOE's estimate is made of no points");
  }
  internal_error("unknown cost model {}", static_cast<int>(model));
}

}  // namespace hcclsim::study
