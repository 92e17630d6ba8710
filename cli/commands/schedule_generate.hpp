#pragma once

/// `hcclsim schedule generate`: the schedule of any collective as a file.
namespace hcclsim::cli {

class Command;

void add_schedule_generate(Command& schedule);

}  // namespace hcclsim::cli
