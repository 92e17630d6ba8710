#pragma once

#include <CLI/CLI.hpp>

namespace hcclsim::cli {

/// `hcclsim sweep submit|status`: sweeps on a cluster that Slurm manages.
void add_sweep_submit_commands(CLI::App& sweep);

}  // namespace hcclsim::cli
