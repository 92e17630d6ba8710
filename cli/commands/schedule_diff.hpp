#pragma once

/// `hcclsim schedule diff`: what differs between two schedules, in structure and in time on a platform.
namespace hcclsim::cli {

class Command;

void add_schedule_diff(Command& schedule);

}  // namespace hcclsim::cli
