#pragma once

#include "cli/options/training/run_options.hpp"

namespace hcclsim::cli {

/// `hcclsim run --mode ps` with complete options: simulates, prints and writes. Throws Error(simulated_failure, "ps")
/// behind the output if the job ended before its last step.
void run_parameter_servers(const RunOptions& options);

}  // namespace hcclsim::cli
