#include "hccl/training/numerics/replica_communication.hpp"

#include <algorithm>
#include <variant>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr Rank no_replica = ~Rank{0};

/// Number of each rank among the replicas of a role.
std::vector<Rank> number_replicas(const Plan& plan, std::uint32_t role) {
  std::vector<Rank> replica_of;
  Rank next = 0;
  for (const std::uint32_t other : plan.role_of) replica_of.push_back(other == role ? next++ : no_replica);
  return replica_of;
}

ReplicaCollective among_replicas(const Plan& plan, const PlannedCollective& planned, std::span<const Rank> replica_of) {
  ReplicaCollective collective{.groups = {}, .schedules = planned.schedules};
  for (const Communicator& group : plan.families[planned.family].groups) {
    std::vector<Rank>& members = collective.groups.emplace_back();
    for (const Rank rank : group.ranks) {
      if (replica_of[rank] == no_replica) internal_error("{} is a collective of several roles", planned.name);
      members.push_back(replica_of[rank]);
    }
  }
  return collective;
}

}  // namespace

ReplicaCommunication replica_communication(const Plan& plan, std::uint32_t role) {
  const std::vector<Rank> replica_of = number_replicas(plan, role);
  const Role& own = plan.roles[role];
  ReplicaCommunication result{.replicas = static_cast<Rank>(std::ranges::count(plan.role_of, role)),
                              .reductions = std::vector<SegmentReduction>(own.segments.size()),
                              .gathers = std::vector<ReplicaCollective>(own.gathers.size())};
  for (std::size_t number = 0; number < own.segments.size(); ++number) {
    result.reductions[number].segment = own.segments[number];
  }
  for (const PlanTask& task : own.tasks) {
    const auto* work = std::get_if<CollectiveTask>(&task.work);
    if (work == nullptr) continue;
    const PlannedCollective& planned = plan.collectives[work->collective];
    if (task.purpose.phase == StepPhase::gather) {
      ReplicaCollective& gather = result.gathers[task.purpose.segment];
      if (gather.groups.empty()) gather = among_replicas(plan, planned, replica_of);
    } else if (task.purpose.phase == StepPhase::reduction) {
      SegmentReduction& reduction = result.reductions[task.purpose.segment];
      if (reduction.reduction.groups.empty()) {
        reduction.reduction = among_replicas(plan, planned, replica_of);
        reduction.scattered = planned.operation.collective == Collective::reduce_scatter;
      } else if (reduction.scattered && planned.operation.collective == Collective::allreduce && !reduction.mirror) {
        reduction.mirror = among_replicas(plan, planned, replica_of);
      }
    }
  }
  return result;
}

}  // namespace hcclsim::hccl
