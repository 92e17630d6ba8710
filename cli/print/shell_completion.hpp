#pragma once

#include <string>

#include "base/json.hpp"

/// What shells and man read of the command: made from the table of its options (cli/options/parse/option_table.hpp), so
/// that they cannot differ from it.
namespace hcclsim::cli {

/// A script for bash: names of commands and options, the words that an option accepts, files where it takes one.
[[nodiscard]] std::string bash_completion(const Json& table);
/// The same for zsh, to be found as _hcclsim.
[[nodiscard]] std::string zsh_completion(const Json& table);
/// The same for fish, with what options mean.
[[nodiscard]] std::string fish_completion(const Json& table);
/// The page hcclsim(1), in roff: all commands with their options.
[[nodiscard]] std::string manual_page(const Json& table, const std::string& version);

}  // namespace hcclsim::cli
