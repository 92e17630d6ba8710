#pragma once

/// `hcclsim schedule time`: how long schedules take on a platform, each alone and all at the same time, and what limits
/// them.
namespace hcclsim::cli {

class Command;

void add_schedule_time(Command& schedule);

}  // namespace hcclsim::cli
