#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// Level L4 of a barrier, which moves no bytes, for a program that completes: no rank ends before every rank has begun.
/// So the beginning of every rank must happen before the end of every other rank; whether it does is the same in every
/// run. Kind of findings: "barrier".
void check_barrier(const TaskProgram& program, Findings& findings);

}  // namespace hcclsim::hccl
