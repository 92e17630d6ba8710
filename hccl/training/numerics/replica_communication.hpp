#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hccl/parallel/plan.hpp"

/// What the replicas of a role of a Plan, the ranks that compute the same with other samples, send each other: the
/// gradients of segments and the weights that they share. Replicas are numbered in the order of their ranks.
namespace hcclsim::hccl {

/// A collective of a role, group by group.
struct ReplicaCollective {
  std::vector<std::vector<Rank>> groups;                   ///< of replicas
  std::vector<std::shared_ptr<const Schedule>> schedules;  ///< of each group
};

struct SegmentReduction {
  Segment segment;
  ReplicaCollective reduction;  ///< an allreduce of all replicas, or a reduce-scatter of those that share parameters
  std::optional<ReplicaCollective> mirror{};  ///< an allreduce of those that then have the same part
  bool scattered = false;
};

struct ReplicaCommunication {
  Rank replicas = 1;
  std::vector<SegmentReduction> reductions;  ///< of each segment
  std::vector<ReplicaCollective> gathers;    ///< of each of Role::gathers

  /// Whether replicas have parts of parameters.
  [[nodiscard]] bool shares_parameters() const { return !gathers.empty(); }
};

[[nodiscard]] ReplicaCommunication replica_communication(const Plan& plan, std::uint32_t role);

}  // namespace hcclsim::hccl
