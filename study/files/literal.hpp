#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"

/// A value as users of MindSpore write it in Python: read, never executed.
namespace hcclsim::study {

struct Literal {
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, list, tuple, dict };

  Kind kind = Kind::none;
  bool boolean = false;
  std::int64_t integer = 0;  ///< beyond its range: the nearest in it, and then `text` has all digits
  double real = 0;
  std::string text{};
  std::vector<Literal> items{};                            ///< of lists and tuples
  std::vector<std::pair<std::string, Literal>> members{};  ///< of dicts, in their order

  /// The member of a dict; null if there is none.
  [[nodiscard]] const Literal* find(std::string_view key) const;
  bool operator==(const Literal&) const = default;
};

/// "bool", "int", "float", "str", "list", "tuple", "dict", "None".
[[nodiscard]] std::string_view name_of(Literal::Kind kind);
/// As Python prints it: "{'mode': 'size', 'config': 32}".
[[nodiscard]] std::string to_string(const Literal& literal);

/// Whether one int is less than another, whatever their sizes.
[[nodiscard]] bool less(const Literal& one, const Literal& other);

/// JSON's lists stand for lists.
[[nodiscard]] Literal literal_of(const Json& json);
/// Tuples become lists, and ints beyond 64 bits texts.
[[nodiscard]] Json json_of(const Literal& literal);

/// What is a literal beside what both Python and JSON have.
struct LiteralSyntax {
  bool json = false;                                    ///< true, false and null; \/ in texts
  std::vector<std::string> mode_names{"ParallelMode"};  ///< classes whose members are texts
};

/// Where reading a literal stands in a text. Python's ints of any base and size, texts with escapes, raw, in three
/// quotes and one behind the other, and dict(key=value) are read; bytes, f-strings and all that is computed are not.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text, std::size_t place = 0, LiteralSyntax syntax = {})
      : text_(text), place_(place), syntax_(std::move(syntax)) {}

  /// The literal that begins here; nothing if there is none, and then problem() says why. A member of a mode's class,
  /// such as context.ParallelMode.SEMI_AUTO_PARALLEL, is its name in lower case.
  [[nodiscard]] std::optional<Literal> read() { return read(0); }
  /// Blanks, line breaks and comments.
  void skip_blanks();
  /// The next character; 0 at the end.
  [[nodiscard]] char peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }
  void advance() { ++place_; }
  [[nodiscard]] std::size_t place() const { return place_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// A name: letters, digits and '_'; empty if there is none.
  [[nodiscard]] std::string_view name();
  /// Names with dots between them.
  [[nodiscard]] std::string_view dotted_name();

 private:
  [[nodiscard]] std::optional<Literal> read(unsigned depth);
  [[nodiscard]] std::optional<Literal> read_texts();
  /// Whether a text of one or three quotes was read and added to `text`.
  [[nodiscard]] bool add_text(std::string& text);
  [[nodiscard]] bool add_escape(std::string& text);
  [[nodiscard]] bool begins_text() const;
  [[nodiscard]] std::optional<Literal> read_number();
  [[nodiscard]] std::optional<Literal> read_word(unsigned depth);
  [[nodiscard]] std::optional<Literal> read_dict_call(unsigned depth);
  [[nodiscard]] std::optional<Literal> read_items(char close, Literal::Kind kind, unsigned depth);
  [[nodiscard]] std::optional<Literal> read_dict(unsigned depth);
  std::nullopt_t fail(std::string why);

  std::string_view text_;
  std::size_t place_;
  LiteralSyntax syntax_;
  std::string problem_;
};

/// All of a text as one literal; a bare word (on and off, true and false included) is a text (a bool). Nothing if it is
/// none.
[[nodiscard]] std::optional<Literal> parse_literal(std::string_view text);

}  // namespace hcclsim::study
