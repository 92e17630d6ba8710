#include "study/run/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "hccl/collective/selection/explain.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "study/platform/explanation.hpp"

namespace hcclsim::study {
namespace {

/// A reduction of gradients, and the ranks among which the printed rank takes part in it.
struct OwnReduction {
  const hccl::PlannedCollective* planned = nullptr;
  const hccl::Communicator* group = nullptr;
  std::string algorithm;
};

/// Of the printed rank, in the order of the Plan.
std::vector<OwnReduction> reductions_of(const hccl::Plan& plan, Rank rank) {
  std::vector<OwnReduction> reductions;
  std::set<std::uint32_t> seen;
  for (const hccl::PlanTask& task : plan.role(rank).tasks) {
    const auto* call = std::get_if<hccl::CollectiveTask>(&task.work);
    if (call == nullptr || task.purpose.phase != hccl::StepPhase::reduction) continue;
    const hccl::PlannedCollective& planned = plan.collectives[call->collective];
    if (planned.operation.ranks == 1 || !seen.insert(call->collective).second) continue;
    const std::vector<hccl::Communicator>& groups = plan.families[planned.family].groups;
    const auto own = std::ranges::find_if(groups, [rank](const hccl::Communicator& group) {
      return std::ranges::find(group.ranks, rank) != group.ranks.end();
    });
    const auto number = static_cast<std::size_t>(own - groups.begin());
    reductions.push_back({&planned, &*own, planned.schedules[number]->algorithm});
  }
  return reductions;
}

/// "AR1", "RS1" of gradients that are scattered, "mirror1" of parts of them.
std::string title_of(const hccl::PlannedCollective& planned) {
  if (planned.operation.collective == hccl::Collective::reduce_scatter) return fmt::format("RS{}", planned.segment + 1);
  return planned.name.starts_with("mirror") ? planned.name : fmt::format("AR{}", planned.segment + 1);
}

/// Reductions that use the same algorithm of one collective among as many ranks.
struct Alike {
  const OwnReduction* largest = nullptr;
  std::size_t count = 0;
};

std::vector<Alike> alike_reductions(const std::vector<OwnReduction>& reductions) {
  std::map<std::tuple<hccl::Collective, Rank, std::string>, Alike> kinds;
  for (const OwnReduction& reduction : reductions) {
    const hccl::Operation& operation = reduction.planned->operation;
    Alike& alike = kinds[{operation.collective, operation.ranks, reduction.algorithm}];
    if (++alike.count == 1 || operation.payload() > alike.largest->planned->operation.payload()) {
      alike.largest = &reduction;
    }
  }
  std::vector<Alike> all;
  for (const auto& [kind, alike] : kinds) all.push_back(alike);
  return all;
}

}  // namespace

RunExplanation::RunExplanation(Experiment& experiment) {
  const hccl::Plan plan = experiment.plan();
  const std::vector<OwnReduction> reductions = reductions_of(plan, experiment.training.simulation.rank);
  std::vector<std::vector<hccl::CollectiveCall>> points;
  bool simulated = true;
  for (const Alike& alike : alike_reductions(reductions)) {
    const hccl::PlannedCollective& planned = *alike.largest->planned;
    const hccl::Communicator& group = *alike.largest->group;
    const hccl::Explanation explanation = explain(experiment.training.step.request_of(planned.operation), group,
                                                  experiment.cluster, experiment.soc, experiment.costs);
    const std::string others = alike.count == 1 ? "" : fmt::format(", the largest of {} like it", alike.count);
    collectives_.push_back(study::explained(explanation, title_of(planned) + others, planned.operation.payload()));
    simulated = simulated && group.ranks.size() <= study::most_explained_by_simulation;
    for (const hccl::Alternative& alternative : explanation.alternatives) {
      if (alternative.schedule != nullptr)
        points.push_back({{alternative.algorithm, alternative.schedule, group.ranks}});
    }
  }
  if (!simulated || points.empty()) return;
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
