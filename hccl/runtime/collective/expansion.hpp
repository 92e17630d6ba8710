#pragma once

#include <string>

#include "device/task_cost.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/settings/config.hpp"

/// What HCCL_OP_EXPANSION_MODE changes about the costs of a collective. HOST: the platform's costs of issue, a task
/// graph of A2 being submitted whole. HOST_TS: the host gives each task to the scheduler by itself, so it may start at
/// once. AI_CPU: the platform's costs of A3, where the device issues. AIV: one kernel on the vector cores, whose flags
/// and copies cost an access to the other NPU's memory; for what HCCL documents it for.
namespace hcclsim::hccl {

/// Why HCCL does not carry out the operation on vector cores, as the end of a sentence, or nothing if it does. What its
/// documents limit (CANN 8.5, HCCL_OP_EXPANSION_MODE): operators, types, sum, max and min, one server of A2 or one
/// super-pod of A3; broadcast within a server; deterministic results only of allreduce and reduce-scatter of less than
/// 8 MB.
[[nodiscard]] std::string refused_by_vector_cores(const Operation& operation, const Topology& topology,
                                                  device::Generation generation, Determinism determinism);

/// The costs of a collective in this mode.
[[nodiscard]] device::TaskCosts costs_in(OpExpansion expansion, device::TaskCosts costs);

}  // namespace hcclsim::hccl
