#pragma once

#include <string>

#include "cli/options/training/run_options.hpp"
#include "study/files/foreign/emit/emit.hpp"

namespace hcclsim::cli {

class Command;

/// `hcclsim run --emit`, with complete options: the run as a launch file, which was read again and says the same step
/// with the options that stand in its comment. Throws Error(bad_input, "option") for what the program cannot say, and
/// what loading the run throws.
[[nodiscard]] std::string emitted_launch_file(const Command& command, const RunOptions& options,
                                              study::LaunchProgram program);

}  // namespace hcclsim::cli
