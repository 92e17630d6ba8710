#pragma once

namespace hcclsim::cli {

class Command;

/// Adds `hcclsim models list` and `hcclsim models show NAME`: the networks, their layers, parameters, gradients in
/// production order and kernels as launched. Prints to standard output; throws Error.
void add_models_command(Command& app);

}  // namespace hcclsim::cli
