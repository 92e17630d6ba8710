#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// Level L0, task by task: peers, notify slots and byte ranges exist; ranges are aligned, cut no element in two, have
/// the same length on both sides and do not overlap; nothing writes into an input; the chip has what the schedule asks
/// for.
void check_form(const TaskProgram& program, const CheckOptions& options, Findings& findings);

}  // namespace hcclsim::hccl
