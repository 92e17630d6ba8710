#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/files/foreign/shell/environment.hpp"

/// The commands of a shell script, followed and never executed: variables, arrays, sums, conditions, loops over known
/// words, functions, `eval`, and files of its own that it reads (`source`) or starts (`bash`). What only running it
/// would tell (`$1`, most of `$(command)`, variables that it does not set) stays unknown, under its name. Where a
/// condition is not known, all its commands count, and a variable that it changes is unknown.
namespace hcclsim::study {

struct ShellCommand {
  std::vector<std::string> words{};
  std::uint32_t line = 0;
};

struct ShellScript {
  std::vector<ShellCommand> commands{};            ///< in their order, without assignments
  std::map<std::string, std::string> variables{};  ///< as they are at the end; arrays with blanks between their words
};

/// Throws Error(bad_input, "foreign") with file and line for a quote or an array that does not end, and for a script
/// that goes on for too long.
[[nodiscard]] ShellScript read_shell_script(const std::string& text, const std::string& file,
                                            const ShellFiles& files = {});

/// Files beside a script: by the path that it writes, from its own folder or one of those above it.
[[nodiscard]] ShellFiles files_beside(const std::string& script);

/// What is unknown in a word: "$1", "$NODES", "$(date)"; nothing if all is known.
[[nodiscard]] std::optional<std::string> unknown_part(std::string_view word);
/// A word for people: unknown parts as the script writes them.
[[nodiscard]] std::string readable(std::string_view word);

}  // namespace hcclsim::study
