#pragma once

/// `hcclsim schedule check`: a schedule proved, level by level, or what is wrong with it (docs/checker.md); status 1 if
/// it is refused.
namespace hcclsim::cli {

class Command;

void add_schedule_check(Command& schedule);

}  // namespace hcclsim::cli
