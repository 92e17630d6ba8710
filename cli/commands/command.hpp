#pragma once

#include <string_view>

namespace hcclsim::cli {

/// The command `hcclsim`: parses the arguments, runs a sub-command, prints an error as "hcclsim: error: …" on stderr.
/// Returns the exit status: 0 or the ErrorCode of the failure.
enum class WrittenFiles : bool { refused, accepted };
int run_command(int argc, char** argv, WrittenFiles files = WrittenFiles::accepted);

}  // namespace hcclsim::cli
