#pragma once

/// `hcclsim schedule run`: a schedule executed on real data and compared with what its operation asks for.
namespace hcclsim::cli {

class Command;

void add_schedule_run(Command& schedule);

}  // namespace hcclsim::cli
