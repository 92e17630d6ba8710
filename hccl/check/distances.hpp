#pragma once

#include "hccl/check/report.hpp"
#include "hccl/check/task_program.hpp"

namespace hcclsim::hccl {

/// Level L7, for a program that completes: steps and bytes, and the least that any schedule can do with.
///
/// Steps: after each, a rank can know the contributions of at most k+1 times as many ranks as before, where k is the
/// number of transfers that a rank takes part in at a time, here its queues: at least ⌈log_{k+1} p⌉. Bytes: see
/// Contract. Both hold for any topology whose ranks can all reach each other.
[[nodiscard]] Distances distances_of(const TaskProgram& program);

}  // namespace hcclsim::hccl
