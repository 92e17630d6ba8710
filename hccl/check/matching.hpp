#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

/// Levels L1 and L2, both on a program that has passed L0.
namespace hcclsim::hccl {

/// L1: every wait has one post and every post one wait; a notify is local or of two ranks.
void check_matching(const TaskProgram& program, Findings& findings);

/// L2: the program ends, with queues of the given depth. A post that finds its notify still set, and two queues that
/// wait for a notify at the same time, go to `matching` (level L1), a deadlock to `deadlock`: the shortest cycle of
/// queues that wait for each other.
///
/// One run decides for all interleavings if the uses of every notify follow each other: then each wait takes the same
/// post in every run, the program is a marked graph, and marked graphs are confluent. This premise is verified by
/// check_races in races.hpp: each post comes after the wait for the post before, and each wait after the wait before.
void check_progress(const TaskProgram& program, const CheckOptions& options, Findings& matching, Findings& deadlock);

}  // namespace hcclsim::hccl
