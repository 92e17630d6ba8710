#pragma once

#include <CLI/CLI.hpp>

namespace hcclsim::cli {

/// Adds `hcclsim run`: simulates data-parallel training and prints when everything happened. The platform is loaded in
/// a child process (base/child_process.hpp), which simulates what was asked for and starts further children for what
/// the text form compares it with.
void add_run_command(CLI::App& app);

}  // namespace hcclsim::cli
