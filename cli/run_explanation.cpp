#include "cli/run_explanation.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <utility>

#include "base/json.hpp"
#include "hccl/collective/selection/explain.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "study/explanation.hpp"

namespace hcclsim::cli {
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
    bytes += program.gradients[g].elements * size_of(program.gradient_type());
  }
  return bytes;
}

hccl::CollectiveRequest request_of(const Setting& setting, Bytes bytes) {
  const DataType type = setting.program->gradient_type();
  return setting.options.allreduce_request(bytes / size_of(type), type);
}

std::map<std::string, Alike> alike_segments(const Setting& setting, const hccl::Topology& topology) {
  std::map<std::string, Alike> groups;
  for (std::size_t number = 0; number < setting.options.segments.size(); ++number) {
    const Bytes bytes = bytes_of(setting.options.segments[number], *setting.program);
    Alike& alike = groups[make_collective(request_of(setting, bytes), topology, setting.soc)->algorithm];
    if (++alike.count == 1 || bytes > alike.bytes) {
      alike.largest = number;
      alike.bytes = bytes;
    }
  }
  return groups;
}

}  // namespace

RunExplanation::RunExplanation(const Setting& setting) {
  const hccl::Communicator world = hccl::world_communicator(setting.options.npus);
  if (world.ranks.size() == 1) return;
  const hccl::Topology topology = hccl::topology_of(world, setting.cluster);
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const auto& [algorithm, alike] : alike_segments(setting, topology)) {
    const hccl::Explanation explanation =
        explain(request_of(setting, alike.bytes), world, setting.cluster, setting.soc, setting.costs);
    const std::string others = alike.count == 1 ? "" : fmt::format(", the largest of {} like it", alike.count);
    collectives_.push_back(
        study::explained(explanation, fmt::format("AR{}{}", alike.largest + 1, others), alike.bytes));
    for (const hccl::Alternative& alternative : explanation.alternatives) {
      if (alternative.schedule != nullptr) points.push_back({{alternative.algorithm, alternative.schedule}});
    }
  }
  if (setting.options.npus > study::most_explained_by_simulation) return;
  child_.emplace([&setting, points = std::move(points)] {
    Json times = Json::array();
    for (const hccl::SimulatedCollectives& result :
         simulate_each(setting.cluster, setting.soc, setting.costs, {.launch = setting.options.launch}, points)) {
      times.push_back(result.calls.front().duration);
    }
    return times.dump();
  });
}

void RunExplanation::finish(RunReport& report) {
  if (child_.has_value()) {
    const Json times = Json::parse(child_->result());
    std::size_t next = 0;
    for (ExplainedCollective& collective : collectives_) {
      for (ExplainedAlgorithm& algorithm : collective.algorithms) algorithm.simulated = times.at(next++).get<double>();
    }
  }
  report.explanation = std::move(collectives_);
}

}  // namespace hcclsim::cli
