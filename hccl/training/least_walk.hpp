#pragma once

#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::hccl {

/// A step that no simulation of the Plan's first step is shorter than: kernels take their time, and what ranks do
/// together as long as a rank needs at least for the transfers that it carries out itself, one behind the other in each
/// of its queues, each with the whole capacity of the links on its way. Nobody waits for links, posts and reductions.
///
/// A collective is counted so where all ranks of its groups do the same, so that they come to it at the same time here;
/// else it takes no time from when the last one has come. A message begins when both ends have come to it.
[[nodiscard]] PlanWalk least_walk(const Plan& plan, sim::Cluster& cluster);

}  // namespace hcclsim::hccl
