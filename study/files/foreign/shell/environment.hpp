#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Variables of a shell script, and words with their values.
namespace hcclsim::study {

/// The text of a file that a script names; nothing if it is not there.
using ShellFiles = std::function<std::optional<std::string>(const std::string& path)>;

/// What a variable holds: a text, or the words of an array.
struct ShellValue {
  bool list = false;
  std::vector<std::string> words{};

  /// With blanks between the words.
  [[nodiscard]] std::string text() const;
};

class ShellEnvironment {
 public:
  std::map<std::string, ShellValue> variables{};
  std::optional<std::vector<std::string>> arguments{};  ///< $1, …; nothing: those of the script, which nobody knows

  /// The words that a written word comes to: quotes and variables are followed.
  [[nodiscard]] std::vector<std::string> fields(std::string_view written) const;
  /// The same as one text, as in an assignment.
  [[nodiscard]] std::string text(std::string_view written) const;
  /// The words of "(a b c)".
  [[nodiscard]] ShellValue array(std::string_view written) const;
  /// Of a sum: + - * / % ( ), comparisons, variables with or without $. Nothing if it is not known.
  [[nodiscard]] std::optional<std::int64_t> sum(std::string_view written) const;
  /// Of `[ … ]` and `[[ … ]]`, without the brackets. Nothing if it is not known.
  [[nodiscard]] std::optional<bool> condition(const std::vector<std::string>& words) const;

 private:
  friend class ShellWordReader;
  [[nodiscard]] ShellValue value_of(const std::string& name) const;
  [[nodiscard]] ShellValue value_in_braces(std::string_view whole) const;
  [[nodiscard]] ShellValue output_of(std::string_view command) const;

  mutable int depth_ = 0;  ///< of texts in texts
};

/// A text that stands for something that nobody knows before the script runs.
[[nodiscard]] std::string shell_unknown(std::string_view what);
[[nodiscard]] bool is_shell_unknown(std::string_view text);

/// Around what is unknown in a word; no text of a script has them.
inline constexpr char shell_unknown_begin = '\x01';
inline constexpr char shell_unknown_end = '\x02';

}  // namespace hcclsim::study
