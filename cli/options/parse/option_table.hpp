#pragma once

#include "base/json.hpp"

/// All commands and options, for programs that call hcclsim or write about it: packages, completion, manuals.
namespace hcclsim::cli {

class Command;

/// An object {name, help, options, commands}; a command within the list `commands` is the same kind of object. An
/// option is {names, argument, flag, several, required, file, value, accepted, default, group, help}: `names` with
/// their dashes, or of an argument its one name; `file` is "read", "written" or null. To be called for a command of
/// which all is declared. Options that help does not show are left out.
[[nodiscard]] Json option_table(const Command& command);

}  // namespace hcclsim::cli
