#pragma once

namespace hcclsim::cli {

class Command;

/// `hcclsim sweep submit|status`: sweeps on a cluster that Slurm manages.
void add_sweep_submit_commands(Command& sweep);

}  // namespace hcclsim::cli
