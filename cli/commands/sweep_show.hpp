#pragma once

namespace hcclsim::cli {

class Command;

/// `hcclsim sweep show|export|best|plot|merge`: what a database holds.
void add_sweep_show_commands(Command& sweep);

}  // namespace hcclsim::cli
