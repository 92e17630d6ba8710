#pragma once

#include <vector>

#include "hccl/parallel/plan/plan.hpp"

/// What ranks send each other once, before the first step.
namespace hcclsim::hccl {

/// Of the replicas of a stage.
struct StartUp {
  /// Rank 0 of the replicas sends all of its weights, as MindSpore's parameter_broadcast does: one broadcast in fp32.
  std::uint64_t broadcast_elements = 0;
  std::vector<models::Kernel> copies{};  ///< messages of parameters that several stages have, by their owner
};

/// Empty if nothing is sent. One role per stage; `shape` is that of the steps.
[[nodiscard]] Plan start_up_plan(const std::vector<StartUp>& stages, Rank ranks, const ScheduleMaker& make_schedule);

}  // namespace hcclsim::hccl
