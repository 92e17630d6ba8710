#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"

/// What the replicas of a stage of a Plan, the ranks that compute the same with other samples, send each other: the
/// gradients of segments and the weights that they share. Replicas are numbered in the order of their ranks. They have
/// one role, or one for each replica if each updates parameters of its own ("dealt"). Where operators are cut over the
/// ranks of a stage, the replicas of a parameter are in several groups, which have different parts of it.
namespace hcclsim::hccl {

/// A collective of a role, group by group.
struct ReplicaCollective {
  std::vector<std::vector<Rank>> groups;                   ///< of replicas
  std::vector<std::shared_ptr<const Schedule>> schedules;  ///< of each group
};

/// A collective of a compression hook, in the place of an allreduce.
struct HookCollective {
  HookAction action{};
  ReplicaCollective collective;
};

struct SegmentReduction {
  Segment segment;
  /// An allreduce of all replicas that have the same part of the parameters, or a reduce-scatter of those that share
  /// it.
  ReplicaCollective reduction;
  std::optional<ReplicaCollective> mirror{};  ///< an allreduce of those that then have the same part
  bool scattered = false;
  DataType wire = DataType::fp32;  ///< type in which the gradients are reduced
  /// Type that they have before and after that, if it is another one: fp16 or bf16.
  std::optional<DataType> cast_back{};
  std::vector<HookCollective> hook{};  ///< of its compressed steps
};

struct ReplicaCommunication {
  Rank replicas = 1;
  std::vector<SegmentReduction> reductions;  ///< of each segment
  std::vector<ReplicaCollective> gathers;    ///< of each of Role::gathers
  // If parameters are dealt to replicas:
  std::vector<Rank> updated_by{};               ///< of each gradient
  std::vector<ReplicaCollective> broadcasts{};  ///< of updated parameters, from replica 0, 1, …

  [[nodiscard]] bool deals_parameters() const { return !updated_by.empty(); }
  /// Whether replicas keep some parameters, or parts of them, that others do not.
  [[nodiscard]] bool shares_parameters() const { return !gathers.empty() || deals_parameters(); }
};

[[nodiscard]] ReplicaCommunication replica_communication(const Plan& plan, std::uint32_t stage);

/// A group of a collective whose ranks are of a stage.
struct StageGroup {
  std::uint32_t number = 0;    ///< in the family
  std::vector<Rank> replicas;  ///< in the order of the group
};
/// Of one stage: a family may have groups of others.
[[nodiscard]] std::vector<StageGroup> groups_of_stage(const Plan& plan, const PlannedCollective& collective,
                                                      std::uint32_t stage);

/// The roles whose passes are computed: the first one of every stage, in the order of the stages.
[[nodiscard]] std::vector<std::uint32_t> computing_roles(const Plan& plan);

}  // namespace hcclsim::hccl
