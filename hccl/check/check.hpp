#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"
#include "hccl/schedule/schedule.hpp"

/// The checker proves a schedule, level by level (docs/checker.md): form, matching of posts and waits, freedom from
/// deadlock and from races, what every byte holds in the end, in which order it was reduced, and how far bytes and
/// steps are from the least possible. It is a witness of its own: it shares with the executor only the closed forms of
/// the schedule (hccl/schedule/walk.hpp).
namespace hcclsim::hccl {

/// Throws Error(bad_input, "schedule") for a collective of which it does not know what it has to do.
[[nodiscard]] CheckReport check(const Schedule& schedule, const CheckOptions& options = {});
/// The same for a program that was unrolled and perhaps changed since.
[[nodiscard]] CheckReport check(const TaskProgram& program, const CheckOptions& options = {});

/// Adds a level that somebody else has checked, in its place; the verdict is then that of all.
void add_level(CheckReport& report, LevelReport level);

}  // namespace hcclsim::hccl
