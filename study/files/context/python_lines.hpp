#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Lines and blocks of a Python text, as far as they can be told without its grammar: the text is looked at, never
/// executed.
namespace hcclsim::study {

/// A statement over all its lines, several with ';' between them, or the head of a block with what stands behind it.
struct PythonLine {
  std::size_t begin = 0;  ///< place in the text
  std::size_t colon = 0;  ///< of a head: the ':' that ends it; otherwise `end`
  std::size_t end = 0;
  std::size_t number = 1;    ///< of its first line
  std::size_t depth = 0;     ///< blocks around it
  std::string_view keyword;  ///< of a head: "if", "elif", "else", "try", "except", "def", …; empty: no head

  [[nodiscard]] bool is_head() const { return !keyword.empty(); }
};

/// The lines of a text. Throws Error(bad_input, "context") with file and line for what cannot be Python: texts and
/// brackets that do not end, characters and words where none can be, blocks that are not indented as Python has it.
/// What only the meaning of its words forbids is accepted.
[[nodiscard]] std::vector<PythonLine> python_lines(const std::string& path, std::string_view text);

}  // namespace hcclsim::study
