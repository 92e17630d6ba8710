#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

/// Levels L1 and L2, both on a program that has passed L0.
namespace hcclsim::hccl {

/// L1: every wait has one post and every post one wait, and in no stage do two queues wait for the same notify, so
/// that which post a wait takes is not a matter of luck.
void check_matching(const TaskProgram& program, Findings& findings);

/// L2: the program ends, with queues of the given depth. A post that finds its notify still set goes to `matching`
/// (level L1), a deadlock to `deadlock`: the shortest cycle of queues that wait for each other.
///
/// One run decides for all interleavings if every notify has its uses one after the other: then each wait takes the
/// same post in every run, the program is a marked graph, and those are confluent. That premise is what
/// check_matching (one queue waits) and order.hpp (each post comes after the wait for the one before) verify.
void check_progress(const TaskProgram& program, const CheckOptions& options, Findings& matching, Findings& deadlock);

}  // namespace hcclsim::hccl
