#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace hcclsim::cli {

/// Gives the options of a command that the command line did not set the values of a TOML file: one `key = value` per
/// option, the key being the option's name without dashes, at the top or in a section named as the command. Lists may
/// be TOML lists. Throws Error(bad_input) of kind "config" that names the file and the line of an unknown key or a
/// value that is not accepted.
void apply_config_file(CLI::App& command, const std::string& path);

}  // namespace hcclsim::cli
