#pragma once

#include <CLI/CLI.hpp>

/// `hcclsim tune`: the best gradient split of a training step, with its proof, what others would do, and both confirmed
/// by simulation.
namespace hcclsim::cli {

void add_tune_command(CLI::App& app);

}  // namespace hcclsim::cli
