#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// What a barrier has to do instead of moving bytes, part of level L4, for a program that completes: no rank ends
/// before every rank has begun. So the beginning of every rank must happen before the end of every other, which does
/// not depend on the order of the run. Kind of findings: "barrier".
void check_barrier(const TaskProgram& program, Findings& findings);

}  // namespace hcclsim::hccl
