#pragma once

#include <CLI/CLI.hpp>

namespace hcclsim::cli {

/// `hcclsim sweep show|export|best|plot|merge`: what a database holds.
void add_sweep_show_commands(CLI::App& sweep);

}  // namespace hcclsim::cli
