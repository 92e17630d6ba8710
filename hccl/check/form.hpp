#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// Level L0, task by task: peers, notify slots and byte ranges exist; ranges are aligned, cut no element in two, have
/// the same length on both sides and do not overlap; no task writes into an input; the chip has the streams, notifies
/// and memory that the schedule needs.
void check_form(const TaskProgram& program, const CheckOptions& options, Findings& findings);

}  // namespace hcclsim::hccl
