#pragma once

#include <CLI/CLI.hpp>

namespace hcclsim::cli {

/// `hcclsim sweep`: many runs or collectives, their results in a database.
void add_sweep_command(CLI::App& app);

}  // namespace hcclsim::cli
