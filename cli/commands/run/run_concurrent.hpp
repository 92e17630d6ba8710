#pragma once

#include "cli/options/training/concurrent_options.hpp"

namespace hcclsim::cli {

/// `hcclsim run --concurrent`: simulates jobs at the same time, prints and writes.
void run_concurrent(const Command& command, const RunOptions& options, const ConcurrentOptions& concurrent);

}  // namespace hcclsim::cli
