#include "hccl/training/numerics/replicas/replica_communication.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr Rank no_replica = ~Rank{0};

/// Number of each rank among the replicas of a stage.
std::vector<Rank> number_replicas(const Plan& plan, std::uint32_t stage) {
  std::vector<Rank> replica_of;
  Rank next = 0;
  for (const std::uint32_t role : plan.role_of) {
    replica_of.push_back(plan.roles[role].stage == stage ? next++ : no_replica);
  }
  return replica_of;
}

/// The replica that updates each gradient, if it is one alone; else none. Replicas that update all have several roles
/// where their kernels take other times.
std::vector<Rank> find_updaters(const Plan& plan, std::uint32_t stage, std::span<const Rank> replica_of) {
  const auto same_stage = [&](const Role& role) { return role.stage == stage; };
  if (std::ranges::count_if(plan.roles, same_stage) == 1) return {};
  std::vector<Rank> updated_by;
  for (std::size_t rank = 0; rank < plan.role_of.size(); ++rank) {
    const std::uint32_t role = plan.role_of[rank];
    if (plan.roles[role].stage != stage) continue;
    updated_by.resize(plan.roles[role].program->gradients.size(), no_replica);
    for (const models::Kernel& kernel : plan.roles[role].program->once_per_step()) {
      if (!kernel.owners) continue;
      Rank& updater = updated_by[kernel.gradient];
      if (updater != no_replica && updater != replica_of[rank]) return {};
      updater = replica_of[rank];
    }
  }
  if (std::ranges::find(updated_by, no_replica) != updated_by.end()) internal_error("nobody updates some parameters");
  return updated_by;
}

std::vector<StageGroup> groups_among(const Plan& plan, const PlannedCollective& planned,
                                     std::span<const Rank> replica_of) {
  std::vector<StageGroup> found;
  const std::vector<Communicator>& groups = plan.families[planned.family].groups;
  for (std::uint32_t number = 0; number < groups.size(); ++number) {
    const std::vector<Rank>& ranks = groups[number].ranks;
    if (replica_of[ranks.front()] == no_replica) continue;
    StageGroup& group = found.emplace_back(StageGroup{.number = number, .replicas = {}});
    for (const Rank rank : ranks) {
      if (replica_of[rank] == no_replica) internal_error("{} is a collective of several stages", planned.name);
      group.replicas.push_back(replica_of[rank]);
    }
  }
  return found;
}

ReplicaCollective among_replicas(const Plan& plan, const PlannedCollective& planned, std::span<const Rank> replica_of) {
  ReplicaCollective collective;
  for (StageGroup& group : groups_among(plan, planned, replica_of)) {
    collective.groups.push_back(std::move(group.replicas));
    collective.schedules.push_back(planned.schedules[group.number]);
  }
  return collective;
}

}  // namespace

std::vector<StageGroup> groups_of_stage(const Plan& plan, const PlannedCollective& collective, std::uint32_t stage) {
  return groups_among(plan, collective, number_replicas(plan, stage));
}

std::vector<std::uint32_t> computing_roles(const Plan& plan) {
  std::vector<std::uint32_t> roles;
  for (std::uint32_t role = 0; role < plan.roles.size(); ++role) {
    if (role == 0 || plan.roles[role].stage != plan.roles[role - 1].stage) roles.push_back(role);
  }
  return roles;
}

ReplicaCommunication replica_communication(const Plan& plan, std::uint32_t stage) {
  const std::vector<Rank> replica_of = number_replicas(plan, stage);
  const Role& own = *std::ranges::find(plan.roles, stage, &Role::stage);
  ReplicaCommunication result{.replicas = static_cast<Rank>(std::ranges::count_if(
                                  replica_of, [](Rank replica) { return replica != no_replica; })),
                              .reductions = std::vector<SegmentReduction>(own.segments.size()),
                              .gathers = std::vector<ReplicaCollective>(own.gathers.size()),
                              .updated_by = find_updaters(plan, stage, replica_of)};
  for (std::size_t number = 0; number < own.segments.size(); ++number) {
    const models::Gradient& first = own.program->gradients[own.segments[number].first];
    result.reductions[number].segment = own.segments[number];
    result.reductions[number].wire = first.dtype;
    result.reductions[number].cast_back = first.cast_back;
  }
  for (const PlanTask& task : own.tasks) {
    const auto* work = std::get_if<CollectiveTask>(&task.work);
    if (work == nullptr) continue;
    const PlannedCollective& planned = plan.collectives[work->collective];
    if (task.purpose.phase == StepPhase::gather && task.purpose.segment == Purpose::none) {
      result.broadcasts.push_back(among_replicas(plan, planned, replica_of));
    } else if (task.purpose.phase == StepPhase::gather) {
      ReplicaCollective& gather = result.gathers[task.purpose.segment];
      if (gather.groups.empty()) gather = among_replicas(plan, planned, replica_of);
    } else if (task.purpose.phase == StepPhase::reduction) {
      SegmentReduction& reduction = result.reductions[task.purpose.segment];
      if (task.purpose.action.has_value()) {
        reduction.hook.push_back({*task.purpose.action, among_replicas(plan, planned, replica_of)});
      } else if (reduction.reduction.groups.empty()) {
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
