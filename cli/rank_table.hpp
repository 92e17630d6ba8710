#pragma once

#include <CLI/CLI.hpp>

namespace hcclsim::cli {

/// Adds `hcclsim ranktable` with its sub-commands check and generate.
void add_rank_table_command(CLI::App& app);

}  // namespace hcclsim::cli
