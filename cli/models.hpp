#pragma once

#include <CLI/CLI.hpp>

namespace hcclsim::cli {

/// Adds `hcclsim models list` and `hcclsim models show NAME`: the networks, their layers, parameters, gradients in
/// production order and kernels as launched. Prints to standard output; throws Error.
void add_models_command(CLI::App& app);

}  // namespace hcclsim::cli
