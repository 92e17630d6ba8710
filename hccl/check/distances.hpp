#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// Level L7, for a program that completes: steps and bytes, and the least that any schedule can do with (Contract),
/// given that all ranks can reach each other. Steps are transfers that wait for each other, of a barrier posts; the
/// bound supposes that a rank takes part in as many transfers of one step as it does here at most.
[[nodiscard]] Distances distances_of(const TaskProgram& program);

}  // namespace hcclsim::hccl
