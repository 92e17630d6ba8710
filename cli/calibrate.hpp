#pragma once

#include <CLI/CLI.hpp>

/// `hcclsim calibrate`: link speeds of a platform fitted to measured communication times.
namespace hcclsim::cli {

void add_calibrate_command(CLI::App& app);

}  // namespace hcclsim::cli
