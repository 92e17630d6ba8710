#include "study/files/context/python_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

constexpr std::array<std::string_view, 14> head_words{"if",      "elif", "else",  "for",  "while", "try",   "except",
                                                      "finally", "def",  "class", "with", "async", "match", "case"};
/// Words between two operands, or behind one.
constexpr std::array<std::string_view, 10> joining_words{"and",  "or",  "in", "is",   "if",
                                                         "else", "for", "as", "from", "async"};
/// Words before an operand, and those of them that may stand without one.
constexpr std::array<std::string_view, 8> leading_words{"not",    "lambda", "await", "del",
                                                        "assert", "global", "async", "nonlocal"};
constexpr std::array<std::string_view, 3> perhaps_leading_words{"yield", "return", "raise"};
constexpr std::array<std::string_view, 3> lone_words{"pass", "break", "continue"};
/// Signs of two operands, or of one: long ones first.
constexpr std::array<std::string_view, 44> all_signs{
    "**=", "//=", ">>=", "<<=", "...", "!=", "==", "<=", ">=", "->", ":=", "+=", "-=", "*=", "/=",
    "%=",  "@=",  "&=",  "|=",  "^=",  "**", "//", "<<", ">>", "+",  "-",  "*",  "/",  "%",  "@",
    "&",   "|",   "^",   "~",   "<",   ">",  "=",  ".",  ",",  ":",  ";",  "(",  ")",  "["};

constexpr std::size_t most_blocks = 100;  // as of CPython's tokenizer

bool contains(const auto& words, std::string_view word) { return std::ranges::find(words, word) != words.end(); }
bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & '\x80') != 0; }
bool in_word(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Cuts a text into lines, each of which it reads word by word: an operand follows an operator, and the other way
/// round.
class LineReader {
 public:
  LineReader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  std::vector<PythonLine> run() && {
    while (skip_to_line()) {
      indent();
      read_line();
    }
    if (awaits_block_) fail("an indented block is missing behind line {}", lines_.back().number);
    return std::move(lines_);
  }

 private:
  struct Bracket {
    char opened;
    std::size_t line;
    std::size_t lambdas = 0;  ///< whose ':' has not come
  };

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("context", "{}:{}: this is no Python: {}", path_, number_,
              fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void next() {
    if (peek() == '\n') ++number_;
    ++at_;
  }

  /// Blanks within a line; within brackets also its ends. A '\' joins two lines.
  void skip_blanks() {
    for (;; next()) {
      if (peek() == '#') {
        while (at_ < text_.size() && peek() != '\n') next();
      }
      const bool joins = peek() == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'));
      if (joins) next();
      if (joins && peek() == '\r') next();
      const bool blank = peek() == ' ' || peek() == '\t' || peek() == '\f' || peek() == '\r';
      if (!blank && !(peek() == '\n' && (joins || brackets_.size() > 1))) return;
    }
  }

  /// Whether there is one more line with something on it; its column is that of its first character.
  bool skip_to_line() {
    for (column_ = 0; at_ < text_.size(); next()) {
      const char c = peek();
      if (c == '#') {
        while (at_ < text_.size() && peek() != '\n') next();
      }
      if (peek() == '\n' || c == '\f') {
        column_ = 0;
      } else if (c == ' ') {
        ++column_;
      } else if (c == '\t') {
        column_ = column_ / 8 * 8 + 8;
      } else if (c != '\r' && c != '#' && !text_.substr(at_).starts_with("\xEF\xBB\xBF") && c != '\xBB' &&
                 c != '\xBF') {
        return true;
      }
    }
    return false;
  }

  void indent() {
    if (awaits_block_) {
      if (column_ <= columns_.back()) fail("an indented block is missing behind line {}", lines_.back().number);
      if (columns_.size() > most_blocks) fail("more than {} blocks stand in each other", most_blocks);
      columns_.push_back(column_);
      awaits_block_ = false;
    }
    while (column_ < columns_.back()) columns_.pop_back();
    if (column_ != columns_.back()) fail("the line is indented as no block is");
  }

  // Words. -----------------------------------------------------------------------------------------------------------

  void read_line() {
    lines_.push_back({.begin = at_, .number = number_, .depth = columns_.size() - 1, .keyword = {}});
    brackets_.assign(1, {.opened = '\0', .line = number_});
    take_operator('k');
    keyword_ = keyword_here();
    if (!keyword_.empty()) {
      lines_.back().keyword = keyword_;
      for (std::size_t i = 0; i < keyword_.size(); ++i) next();
    }
    is_import_ = awaits_import_ = false;
    bool ended = false;  // the head
    in_head_ = !keyword_.empty();
    for (skip_blanks(); at_ < text_.size() && peek() != '\n'; skip_blanks()) {
      if (peek() == ':' && peek(1) != '=' && brackets_.size() == 1 && !keyword_.empty() && !ended &&
          brackets_.back().lambdas == 0) {
        require_end_of_statement();
        lines_.back().colon = at_;
        next();
        ended = true;
        in_head_ = false;
        take_operator('k');
        continue;
      }
      read_word();
    }
    if (brackets_.size() > 1) {
      fail("'{}' of line {} is not closed", brackets_.back().opened, brackets_.back().line);
    }
    require_end_of_statement();
    lines_.back().end = at_;
    if (keyword_.empty()) {
      lines_.back().colon = at_;
    } else if (!ended) {
      fail("a ':' is missing behind '{}'", keyword_);
    }
    awaits_block_ = ended && trimmed(lines_.back().colon + 1, at_).empty();
    if (at_ < text_.size()) next();
  }

  /// What stands in a part of the text, without blanks and what a '#' begins.
  [[nodiscard]] std::string_view trimmed(std::size_t begin, std::size_t end) const {
    const std::size_t first = text_.find_first_not_of(" \t\r\f\\\n", begin);
    if (first == std::string_view::npos || first >= end || text_[first] == '#') return {};
    return text_.substr(first, end - first);
  }

  /// The word that makes this line the head of a block.
  [[nodiscard]] std::string_view keyword_here() const {
    std::size_t length = 0;
    while (in_word(peek(length))) ++length;
    const std::string_view word = text_.substr(at_, length);
    if (!contains(head_words, word)) return {};
    if (word != "match" && word != "case") return word;
    // Names, too: of a head a blank and an operand follow, and a ':' ends it.
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    const std::string_view code = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    const bool operand =
        peek(length) == ' ' &&
        (in_word(peek(length + 1)) || std::string_view("([{\"'-*.").find(peek(length + 1)) != std::string_view::npos);
    const bool joins = std::ranges::any_of(joining_words, [&](std::string_view joint) {
      return line.substr(length).starts_with(fmt::format(" {} ", joint));
    });
    const bool ends = !code.empty() && std::string_view(":([{,").find(code.back()) != std::string_view::npos;
    return operand && !joins && (ends || line.find(": ") != std::string_view::npos) ? word : std::string_view{};
  }

  void read_word() {
    const char c = peek();
    if (const std::optional<std::size_t> quote = begin_of_text()) {
      if (follows_operand_ && last_ != '"') fail("a text follows without an operator");
      read_text(*quote);
      take_operand('"');
    } else if (begins_word(c)) {
      read_name();
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 ||
               (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))) != 0)) {
      if (follows_operand_) fail("a number follows without an operator");
      read_number();
      take_operand('0');
    } else {
      read_sign();
    }
  }

  void take_operand(char last) {
    begins_argument_ = last == 'a' && (last_ == '(' || last_ == ',');
    follows_operand_ = true;
    last_ = last;
  }
  void take_operator(char last) {
    follows_operand_ = false;
    last_ = last;
  }

  void read_number() {
    while (in_word(peek()) || peek() == '.' ||
           ((peek() == '+' || peek() == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') &&
            std::isdigit(static_cast<unsigned char>(peek(1))) != 0)) {
      next();
    }
  }

  void read_name() {
    const std::size_t begin = at_;
    while (in_word(peek())) next();
    const std::string_view word = text_.substr(begin, at_ - begin);
    const bool begins = last_ == 'k' || last_ == ';';
    if (begins) is_import_ = awaits_import_ = word == "import" || word == "from";
    if (is_import_) return read_import(word, begins);
    if (last_ == '.' && !follows_operand_) return take_operand('a');
    if (follows_operand_) {
      if (word == "not" || contains(joining_words, word)) return take_operator('w');
      fail("'{}' follows without an operator", word);
    }
    if (keyword_ == "async" && last_ == 'k' && contains(head_words, word)) return take_operator('w');
    if (contains(lone_words, word)) return take_operand('a');
    if (word == "lambda") ++brackets_.back().lambdas;
    if (contains(leading_words, word)) return take_operator('w');
    if (contains(perhaps_leading_words, word)) return take_operator('r');
    // "not in", "is not", "for x in", and else of "if x else".
    if ((last_ == 'w' || last_ == ',' || last_ == 'r') && (word == "in" || word == "for")) return take_operator('w');
    if (last_ == 'r' && word == "from") return take_operator('w');
    if (contains(joining_words, word) && word != "async") fail("'{}' stands where a value has to", word);
    take_operand('a');
  }

  /// Names with commas and dots between them, and "as"; "from" has an "import" later.
  void read_import(std::string_view word, bool begins) {
    if (word == "import") awaits_import_ = false;
    if (word == "import" || word == "as" || (begins && word == "from")) return take_operator('w');
    if (follows_operand_) fail("'{}' follows without a comma", word);
    take_operand('a');
  }

  /// Where the quote of a text stands behind its letters; nothing if no text begins here.
  [[nodiscard]] std::optional<std::size_t> begin_of_text() const {
    for (std::size_t letters = 0; letters <= 2; ++letters) {
      const char c = peek(letters);
      if (c == '\'' || c == '"') return letters;
      if (std::string_view("rRbBfFuU").find(c) == std::string_view::npos || c == '\0') return std::nullopt;
    }
    return std::nullopt;
  }

  void read_text(std::size_t letters) {
    bool formatted = false;
    for (; letters > 0; --letters, next()) formatted = formatted || peek() == 'f' || peek() == 'F';
    const std::size_t line = number_;
    const char quote = peek();
    const bool three = peek(1) == quote && peek(2) == quote;
    for (std::size_t i = 0; i < (three ? 3U : 1U); ++i) next();
    while (at_ < text_.size()) {
      if (peek() == '\\') {
        next();
        if (peek() == '\r') next();
      } else if (peek() == '\n' && !three) {
        break;
      } else if (peek() == quote && (!three || (peek(1) == quote && peek(2) == quote))) {
        for (std::size_t i = 0; i < (three ? 3U : 1U); ++i) next();
        return;
      } else if (formatted && peek() == '{' && peek(1) == '{') {
        next();
      } else if (formatted && peek() == '{') {
        read_replacement(quote, three);
        continue;
      }
      next();
    }
    number_ = line;
    fail("the text that begins here does not end");
  }

  /// {value:format} in a text: quotes in it may be those of the text.
  void read_replacement(char quote, bool three) {
    std::size_t depth = 0;
    while (at_ < text_.size() && (three || peek() != '\n')) {
      const char c = peek();
      if (c == '{') ++depth;
      if (c == '}' && --depth == 0) return next();
      if ((c == '\'' || c == '"') && (c != quote || closes_behind(c))) {
        read_text(0);
        continue;
      }
      if (c == quote) return;
      next();
    }
  }

  /// Whether a quote within {…} is closed before the '}' or the end of the line.
  [[nodiscard]] bool closes_behind(char quote) const {
    const std::size_t end = std::min(text_.find_first_of("}\n", at_ + 1), text_.size());
    return text_.substr(at_ + 1, end - at_ - 1).find(quote) != std::string_view::npos;
  }

  // Signs. -----------------------------------------------------------------------------------------------------------

  void read_sign() {
    const std::string_view rest = text_.substr(at_);
    const auto* const found =
        std::ranges::find_if(all_signs, [&](std::string_view sign) { return rest.starts_with(sign); });
    const std::string_view sign = found != all_signs.end()                             ? *found
                                  : rest[0] == ']' || rest[0] == '{' || rest[0] == '}' ? rest.substr(0, 1)
                                                                                       : std::string_view{};
    if (sign.empty()) fail("the character '{}' stands in no text", rest.substr(0, 1));
    if (sign == "(" || sign == "[" || sign == "{") {
      brackets_.push_back({.opened = sign[0], .line = number_});
      take_operator(sign[0]);
    } else if (sign == ")" || sign == "]" || sign == "}") {
      close(sign[0]);
    } else if (sign == "...") {
      if (follows_operand_ && !is_import_) fail("'...' follows without an operator");
      if (is_import_) take_operator('.');
      if (!is_import_) take_operand('e');
    } else if (sign == ":") {
      read_colon();
    } else if (is_import_ && sign != "." && sign != "," && sign != "*" && sign != ";") {
      fail("'{}' stands in an import", sign);
    } else if (sign == "=" && !may_assign()) {
      fail("'=' stands where no name gets a value");
    } else if (!follows_operand_ && !may_stand_before(sign)) {
      fail("'{}' stands where a value has to", sign);
    } else {
      take_operator(sign == "," || sign == "." || sign == ";" || sign == "*" || sign == "/" ? sign[0] : 'o');
    }
    for (std::size_t i = 0; i < sign.size(); ++i) next();
  }

  /// Signs of one operand, of parameters (*, /), of decorators, and dots of imports.
  [[nodiscard]] bool may_stand_before(std::string_view sign) const {
    if (sign == "+" || sign == "-" || sign == "~" || sign == "*" || sign == "**") return true;
    if (sign == "@") return at_ == lines_.back().begin;
    if (sign == ".") return is_import_;
    if (sign == ",") return last_ == '*' || last_ == '/' || (last_ == ':' && brackets_.back().opened == '[');
    if (sign == "=") return last_ == ',' && brackets_.size() == 1;
    if (sign == "/") return last_ == ',' && (keyword_ == "def" || keyword_ == "async" || brackets_.back().lambdas > 0);
    return sign == ";" && (last_ == ',' || last_ == 'r');
  }

  /// At the top of a statement that is no head; and behind the name of an argument.
  [[nodiscard]] bool may_assign() const {
    if (brackets_.size() == 1) return !in_head_;
    const bool of_parameters = keyword_ == "def" || keyword_ == "async";
    return brackets_.back().lambdas > 0 || (brackets_.back().opened == '(' && (begins_argument_ || of_parameters));
  }

  void read_colon() {
    if (is_import_) fail("':' stands in an import");
    Bracket& bracket = brackets_.back();
    const bool of_slice = bracket.opened == '[';
    if (bracket.lambdas > 0) {
      --bracket.lambdas;
    } else if (!follows_operand_ && !of_slice) {
      fail("':' stands where a value has to");
    } else if (bracket.opened == '(' && keyword_ != "def" && keyword_ != "async" && keyword_ != "class") {
      fail("':' stands between ( and )");
    }
    take_operator(':');
  }

  void close(char closes) {
    const Bracket bracket = brackets_.back();
    const char opened = closes == ')' ? '(' : closes == ']' ? '[' : '{';
    if (brackets_.size() == 1) fail("'{}' closes nothing", closes);
    if (bracket.opened != opened) fail("'{}' closes the '{}' of line {}", closes, bracket.opened, bracket.line);
    const bool may_end = follows_operand_ || last_ == opened || last_ == ',' || last_ == 'r' || last_ == '*' ||
                         last_ == '/' || (last_ == ':' && opened == '[');
    if (!may_end) fail("a value is missing before '{}'", closes);
    brackets_.pop_back();
    take_operand(')');
  }

  void require_end_of_statement() {
    const bool may_end = follows_operand_ || last_ == ',' || last_ == 'r' || last_ == ';' || last_ == 'k' ||
                         (last_ == '*' && (is_import_ || keyword_ == "except"));
    if (!may_end) fail("a value is missing at the end");
    if (awaits_import_) fail("'import' is missing behind 'from'");
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t number_ = 1;
  std::size_t column_ = 0;
  std::vector<std::size_t> columns_{0};  // of the blocks around
  bool awaits_block_ = false;
  std::vector<PythonLine> lines_;

  // Of the line that is read:
  std::vector<Bracket> brackets_;  // the first is the line itself
  std::string_view keyword_;
  bool is_import_ = false;
  bool awaits_import_ = false;  // behind "from"
  bool in_head_ = false;
  bool follows_operand_ = false;
  bool begins_argument_ = false;  // the operand is a name behind '(' or ','
  /// 'a' name, '0' number, '"' text, ')' brackets, 'e' dots; a sign, 'o' another operator; 'w' a word before a value,
  /// 'r' one that may stand without; 'k' nothing yet.
  char last_ = '\0';
};

}  // namespace

std::vector<PythonLine> python_lines(const std::string& path, std::string_view text) {
  return LineReader(path, text).run();
}

}  // namespace hcclsim::study
