#pragma once

namespace hcclsim::cli {

class Command;

/// `hcclsim sweep`: many runs or collectives, their results in a database.
void add_sweep_command(Command& app);

}  // namespace hcclsim::cli
