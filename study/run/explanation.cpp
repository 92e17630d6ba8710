#include "study/run/explanation.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <utility>

#include "hccl/collective/selection/explain.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "study/explanation.hpp"

namespace hcclsim::study {
namespace {

/// Segments that use the same algorithm.
struct Alike {
  std::size_t largest = 0;
  Bytes bytes = 0;
  std::size_t count = 0;
};

Bytes bytes_of(const hccl::Segment& segment, const models::Program& program) {
  Bytes bytes = 0;
  for (std::uint32_t g = segment.first; g <= segment.last; ++g) {
    bytes += program.gradients[g].elements * size_of(program.gradients[g].dtype);
  }
  return bytes;
}

hccl::CollectiveRequest request_of(const Experiment& experiment, const hccl::Segment& segment) {
  const DataType type = experiment.program->gradients[segment.first].dtype;
  return experiment.training.allreduce_request(bytes_of(segment, *experiment.program) / size_of(type), type);
}

std::map<std::string, Alike> alike_segments(const Experiment& experiment, const hccl::Topology& topology) {
  std::map<std::string, Alike> groups;
  const std::vector<hccl::Segment> segments = experiment.training.segments();
  for (std::size_t number = 0; number < segments.size(); ++number) {
    const Bytes bytes = bytes_of(segments[number], *experiment.program);
    Alike& alike =
        groups[make_collective(request_of(experiment, segments[number]), topology, experiment.soc)->algorithm];
    if (++alike.count == 1 || bytes > alike.bytes) {
      alike.largest = number;
      alike.bytes = bytes;
    }
  }
  return groups;
}

}  // namespace

RunExplanation::RunExplanation(Experiment& experiment) {
  const hccl::Communicator replicas = experiment.training.replicas();
  if (replicas.ranks.size() == 1) return;
  const hccl::Topology topology = hccl::topology_of(replicas, experiment.cluster);
  const std::vector<hccl::Segment> segments = experiment.training.segments();
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const auto& [algorithm, alike] : alike_segments(experiment, topology)) {
    const hccl::Explanation explanation = explain(request_of(experiment, segments[alike.largest]), replicas,
                                                  experiment.cluster, experiment.soc, experiment.costs);
    const std::string others = alike.count == 1 ? "" : fmt::format(", the largest of {} like it", alike.count);
    collectives_.push_back(
        study::explained(explanation, fmt::format("AR{}{}", alike.largest + 1, others), alike.bytes));
    for (const hccl::Alternative& alternative : explanation.alternatives) {
      if (alternative.schedule != nullptr)
        points.push_back({{alternative.algorithm, alternative.schedule, replicas.ranks}});
    }
  }
  if (replicas.ranks.size() > study::most_explained_by_simulation) return;
  child_.emplace([&experiment, points = std::move(points)] {
    std::vector<Seconds> times;
    for (const hccl::SimulatedCollectives& result :
         simulate_each(experiment.cluster, experiment.soc, experiment.costs,
                       {.launch = experiment.training.step.launch}, points)) {
      times.push_back(result.calls.front().duration);
    }
    return times;
  });
}

std::vector<ExplainedCollective> RunExplanation::finish() {
  if (child_.has_value()) {
    const std::vector<Seconds> times = child_->result();
    std::size_t next = 0;
    for (ExplainedCollective& collective : collectives_) {
      for (ExplainedAlgorithm& algorithm : collective.algorithms) algorithm.simulated = times.at(next++);
    }
  }
  return std::move(collectives_);
}

}  // namespace hcclsim::study
