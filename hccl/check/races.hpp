#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// Level L3, for a program that completes: two tasks that touch the same bytes, at least one of which changes them,
/// happen in the same order in every interleaving. A reduction reads and writes its destination. The rank that owns a
/// buffer takes part as well: it fills the buffer before its first task and uses it after its last one, so no other
/// rank may touch the buffer before its owner has arrived or after it may have finished. This also covers the next use
/// of the same buffers.
///
/// Reductions of integers into the same bytes need no order among themselves, since integers wrap around; true is
/// returned if some have none.
///
/// Kinds of findings: "race"; "reduction-order" if both tasks reduce, so that only the order of the reduction is
/// undetermined; "before-start" and "after-end" for accesses outside the time of the rank that owns the memory.
///
/// The last conditions of L1 are checked here, too; their findings go to `matching`: every post of a notify happens
/// after the wait for the post before it, in every interleaving ("notify-overwritten"); and so does every wait, without
/// what follows from the post that it takes ("two-waiters").
[[nodiscard]] bool check_races(const TaskProgram& program, Findings& matching, Findings& races);

}  // namespace hcclsim::hccl
