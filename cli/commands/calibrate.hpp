#pragma once

/// `hcclsim calibrate`: link speeds of a platform fitted to measured communication times.
namespace hcclsim::cli {

class Command;

void add_calibrate_command(Command& app);

}  // namespace hcclsim::cli
