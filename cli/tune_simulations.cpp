#include "cli/tune_simulations.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/print/output.hpp"
#include "study/cost_curve.hpp"
#include "study/split/tuning.hpp"

namespace hcclsim::cli {
namespace {

Json json_of(const study::Phases& phases) {
  return {{"forward", *phases.forward},
          {"backward", *phases.backward},
          {"update", *phases.update},
          {"last_update", *phases.last_update},
          {"tail", *phases.tail},
          {"step", *phases.step},
          {"allreduces", phases.allreduces},
          {"overlapped", *phases.overlapped}};
}

study::Phases phases_of(const Json& json) {
  const auto get = [&](const char* key) { return json[key].get<Seconds>(); };
  return {.forward = get("forward"),
          .backward = get("backward"),
          .forward_backward = get("forward") + get("backward"),
          .allreduces = json["allreduces"].get<std::vector<Seconds>>(),
          .overlapped = json["overlapped"].get<bool>(),
          .update = get("update"),
          .last_update = get("last_update"),
          .tail = get("tail"),
          .step = get("step")};
}

/// Every size that a segment can have, ascending.
std::vector<Bytes> segment_sizes(const study::SplitProblem& problem) {
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

study::Cost looked_up(std::vector<study::CostPoint> points) {
  return [points = std::move(points)](Bytes bytes) {
    const auto found =
        std::lower_bound(points.begin(), points.end(), bytes,
                         [](const study::CostPoint& point, Bytes wanted) { return point.bytes < wanted; });
    if (found == points.end() || found->bytes != bytes) internal_error("a segment of {} bytes has no cost", bytes);
    return found->time;
  };
}

}  // namespace

Child start_step(Experiment& run, hccl::TrainingOptions training) {
  return Child([&run, training = std::move(training)] {
    const hccl::TimedStep step = simulate_training(run.cluster, run.program, run.soc, run.costs, training);
    const auto view = hccl::StepView::of(step.plan, step.trace, training.rank);
    const Seconds step_time = step.step_times[training.rank];
    std::vector<Seconds> ends;
    for (const hccl::SegmentFigures& segment : view.segments) ends.push_back(segment.end);
    return Json{{"ready", view.gradient_ready},
                {"bp_end", view.bp_end},
                {"ends", ends},
                {"step", step_time},
                {"phases", json_of(study::simulated_phases(view, step_time))}}
        .dump();
  });
}

SimulatedStep result_of(Child& child) {
  const Json result = Json::parse(child.result());
  return {result["ready"].get<std::vector<Seconds>>(), result["bp_end"].get<Seconds>(),
          result["ends"].get<std::vector<Seconds>>(), result["step"].get<Seconds>(), phases_of(result["phases"])};
}

Child start_costs(Experiment& run, std::vector<Bytes> sizes, BandwidthFactor bandwidth) {
  return Child([&run, sizes = std::move(sizes), bandwidth] {
    std::map<sim::LinkKind, sim::LinkAdjustment> adjustments;
    for (const sim::Link& link : run.cluster.links()) {
      if (!bandwidth.kind.has_value() || link.kind == *bandwidth.kind) {
        adjustments[link.kind].bandwidth = bandwidth.factor;
      }
    }
    run.cluster.adjust(adjustments);
    Json times = Json::array();
    for (const study::CostPoint& point :
         study::simulate_costs(run.cluster, run.soc, run.costs, run.training, run.program->gradient_type(), sizes)) {
      times.push_back(point.time);
    }
    return times.dump();
  });
}

std::vector<study::CostPoint> result_of(Child& child, const std::vector<Bytes>& sizes) {
  const Json times = Json::parse(child.result());
  std::vector<study::CostPoint> points;
  for (std::size_t i = 0; i < sizes.size(); ++i) points.push_back({sizes[i], times[i].get<Seconds>()});
  return points;
}

std::vector<Bytes> cost_sizes(study::CostModel model, const study::SplitProblem& problem) {
  constexpr std::size_t curve_sizes = 29;
  return model == study::CostModel::simulated ? segment_sizes(problem)
                                              : study::sizes_up_to(problem.total(), curve_sizes);
}

study::SegmentCost segment_cost(study::CostModel model, const std::vector<study::CostPoint>& points) {
  switch (model) {
    case study::CostModel::affine:
      return study::SegmentCost::of(study::fit_affine(points).cost);
    case study::CostModel::table:
      return {study::interpolated(points)};
    case study::CostModel::simulated:
      return {looked_up(points)};
  }
  internal_error("unknown cost model {}", static_cast<int>(model));
}

}  // namespace hcclsim::cli
