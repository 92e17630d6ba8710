#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// Level L3, for a program that completes: two tasks that touch the same bytes, one of them to change them, happen in
/// one order in every interleaving. A reduction reads and writes its destination. The rank that owns a buffer takes
/// part, too: it fills the buffer before its first task and uses it after its last one, so nobody may touch it before
/// the rank has arrived or after it may have finished; that also covers the next use of the same buffers.
///
/// Kinds of findings: "race"; "reduction-order" where both tasks reduce, so that only the order of the numbers is open;
/// "before-start" and "after-end" of the rank that owns the memory.
///
/// What remains to be shown for L1 goes to `matching`: every post of a notify happens after the wait for the post
/// before it, whatever the interleaving ("notify-overwritten").
void check_races(const TaskProgram& program, Findings& matching, Findings& races);

}  // namespace hcclsim::hccl
