#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// Level L7, for a program that completes: its steps and bytes, and the least that any schedule needs (Contract) if all
/// ranks can reach each other. Steps are transfers that wait for each other, or posts in a barrier. The bound assumes
/// that a rank takes part in no more transfers per step than it does here at most.
[[nodiscard]] Distances distances_of(const TaskProgram& program);

}  // namespace hcclsim::hccl
