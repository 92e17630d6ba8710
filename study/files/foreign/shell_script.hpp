#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The commands of a shell script, read and never executed: quotes, comments, lines that go on, assignments, arrays,
/// `$NAME`, `${NAME}`, `${NAME:-otherwise}`, `${ARRAY[@]}` and `$((sum))` are followed. What only running it would tell
/// (`$1`, `$(command)`, variables that it does not set, or sets under conditions) stays unknown, under its name.
namespace hcclsim::study {

struct ShellCommand {
  std::vector<std::string> words;
  std::uint32_t line = 0;
};

struct ShellScript {
  std::vector<ShellCommand> commands;            ///< without assignments and control words
  std::map<std::string, std::string> variables;  ///< as they are at the end; arrays with blanks between their words
};

/// Throws Error(bad_input, "foreign") with file and line for a quote, an array or a sum that does not end.
[[nodiscard]] ShellScript read_shell_script(const std::string& text, const std::string& file);

/// What is unknown in a word: "$1", "$NODES", "$(date)"; nothing if all is known.
[[nodiscard]] std::optional<std::string> unknown_part(std::string_view word);
/// A word for people: unknown parts as the script writes them.
[[nodiscard]] std::string readable(std::string_view word);

}  // namespace hcclsim::study
