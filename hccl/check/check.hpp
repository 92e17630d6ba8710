#pragma once

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"
#include "hccl/schedule/schedule.hpp"

/// The checker proves a schedule, level by level (docs/checker.md): form, matching of posts and waits, freedom from
/// deadlock and from races, what every byte holds in the end, in which order it was reduced, and how far bytes and
/// steps are from the least possible. It is independent: it shares with the executor only the closed forms of the
/// schedule (hccl/schedule/walk.hpp).
namespace hcclsim::hccl {

/// Checks a schedule from L0 up to the last level of the options.
[[nodiscard]] CheckReport check(const Schedule& schedule, const CheckOptions& options = {});
/// The same for a program that was unrolled and may have been changed since.
[[nodiscard]] CheckReport check(const TaskProgram& program, const CheckOptions& options = {});

/// The verdict of a report in which this level has findings.
[[nodiscard]] std::string verdict_against(const LevelReport& level);

/// Inserts a level that was checked elsewhere; the verdict then covers all levels.
void add_level(CheckReport& report, LevelReport level);

}  // namespace hcclsim::hccl
