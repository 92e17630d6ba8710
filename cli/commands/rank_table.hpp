#pragma once

namespace hcclsim::cli {

class Command;

/// Adds `hcclsim ranktable` with its sub-commands check and generate.
void add_rank_table_command(Command& app);

}  // namespace hcclsim::cli
