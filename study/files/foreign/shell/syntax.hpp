#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What a shell script says, as its statements stand in each other. Words are as they are written, with quotes.
namespace hcclsim::study {

struct ShellArm;

/// When a statement comes to its turn: always, or behind `&&` and `||`.
enum class ShellJoint { always, if_ok, if_failed };

/// A statement: a command, or one that holds others.
struct ShellNode {
  enum class Kind { simple, arithmetic, branch, each, loop, choice, function, group };
  Kind kind = Kind::simple;
  ShellJoint joint = ShellJoint::always;
  bool negated = false;
  bool until = false;  ///< a loop that ends when its condition holds
  std::uint32_t line = 0;
  std::string name{};                ///< of a function, or of the variable of `for`
  std::vector<std::string> words{};  ///< of a command, of a list that `for` goes through, or the word of `case`
  std::vector<ShellArm> arms;        ///< what it holds; `else` is an arm without a condition
};

struct ShellArm {
  std::vector<std::string> patterns{};  ///< of `case`
  std::vector<ShellNode> condition{};
  std::vector<ShellNode> body{};
};

using ShellNodes = std::vector<ShellNode>;

/// Throws Error(bad_input, "foreign") with file and line for a quote or an array that does not end. `line`: of the
/// first character.
[[nodiscard]] ShellNodes parse_shell(std::string_view text, const std::string& file, std::uint32_t line = 1);

[[nodiscard]] inline bool is_shell_blank(char c) { return c == ' ' || c == '\t'; }
/// Letters, digits and "_".
[[nodiscard]] bool is_shell_name_character(char c);
/// How many characters of "NAME=" or "NAME+=" a word begins with; 0 if with neither.
[[nodiscard]] std::size_t shell_assignment_length(std::string_view word);

}  // namespace hcclsim::study
