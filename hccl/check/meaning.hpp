#pragma once

#include "hccl/check/report.hpp"
#include "hccl/check/task_program.hpp"

namespace hcclsim::hccl {

/// Levels L4 and L5, for a program that completes. Symbols instead of numbers go through one run of it: every byte
/// holds a tree of contributions. Without races all runs leave the same.
///
/// L4: every byte of the result holds what the collective asks for (contract.hpp), and nobody reads bytes that were
/// never written or reduces bytes of different places of the payload. Kinds of findings: "undefined", "offset",
/// "contribution"; of a barrier, "barrier" (barrier.hpp).
///
/// L5: the shape of the trees. Kinds of findings: "ranks-differ", "order-changed". Empty if L4 has findings.
[[nodiscard]] std::optional<ReductionOrder> check_meaning(const TaskProgram& program, const CheckOptions& options,
                                                          Findings& meaning, Findings& order);

}  // namespace hcclsim::hccl
