#include "study/files/foreign/shell_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

// Around what is unknown in a word; no text of a script has them.
constexpr char unknown_begin = '\x01';
constexpr char unknown_end = '\x02';
// Between the words of an array.
constexpr char array_mark = '\x03';

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string unknown(std::string_view what) { return fmt::format("{}{}{}", unknown_begin, what, unknown_end); }

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  ShellScript run() {
    while (at_ < text_.size()) read_statement();
    for (const auto& [name, value] : variables_) {
      std::string joined = value;
      std::ranges::replace(joined, array_mark, ' ');
      script_.variables[name] = joined;
    }
    return std::move(script_);
  }

 private:
  [[noreturn]] void fail(std::uint32_t line, std::string_view what) const {
    bad_input("foreign", "{}:{}: {}", file_, line, what);
  }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char next() {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
  }

  /// One simple command, as far as the end of its line or a separator.
  void read_statement() {
    std::vector<std::string> words;
    const std::uint32_t line = line_;
    bool ends = false;
    bool redirected = false;
    while (!ends && at_ < text_.size()) {
      const char c = peek();
      if (is_blank(c) || c == '(' || c == ')') {  // sub-shells, and patterns of case
        next();
      } else if (c == '\\' && peek(1) == '\n') {
        next();
        next();
      } else if (c == '#') {
        while (at_ < text_.size() && peek() != '\n') next();
      } else if (c == '\n' || c == ';' || c == '&' || c == '|') {
        ends = true;
        next();
        while (peek() == '&' || peek() == '|' || peek() == ';') next();
      } else if (c == '<' || c == '>') {
        if (c == '<' && peek(1) == '<' && peek(2) != '<') {
          skip_here_document();
          ends = true;
          continue;
        }
        // "2>" is one sign.
        if (at_ > 0 && std::isdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0 && !words.empty())
          words.pop_back();
        next();
        while (peek() == '>' || peek() == '&') next();
        redirected = true;
      } else {
        std::vector<std::string> read = read_word(words.empty());
        if (redirected) {
          redirected = false;
          continue;
        }
        words.insert(words.end(), read.begin(), read.end());
      }
    }
    take(std::move(words), line);
  }

  void skip_here_document() {
    next();
    next();
    if (peek() == '-') next();
    while (is_blank(peek())) next();
    std::string mark;
    while (at_ < text_.size() && !is_blank(peek()) && peek() != '\n') {
      const char c = next();
      if (c != '\'' && c != '"') mark += c;
    }
    while (at_ < text_.size() && next() != '\n') {
    }
    while (at_ < text_.size()) {
      std::string read;
      while (at_ < text_.size() && peek() != '\n') read += next();
      if (at_ < text_.size()) next();
      if (trimmed(read) == mark) return;
    }
  }

  void take(std::vector<std::string> words, std::uint32_t line) {
    static const std::set<std::string_view> opens{"if", "for", "while", "until", "case", "select"};
    static const std::set<std::string_view> closes{"fi", "done", "esac"};
    static const std::set<std::string_view> passes{"then",    "else",  "elif",     "do",    "{",        "}",
                                                   "eval",    "exec",  "time",     "nohup", "function", "export",
                                                   "declare", "local", "readonly", "set",   "!",        "sudo"};
    while (!words.empty()) {
      const std::string& first = words.front();
      if (opens.contains(first)) {
        ++depth_;
        return;
      }
      if (closes.contains(first)) {
        depth_ = std::max(0, depth_ - 1);
      } else if (!passes.contains(first)) {
        break;
      }
      words.erase(words.begin());
    }
    if (!words.empty()) script_.commands.push_back({std::move(words), line});
  }

  /// A word, or none for an assignment; an unquoted variable may be several. `first`: assignments may come here.
  std::vector<std::string> read_word(bool first) {
    std::string name;
    if (first || exported_) {
      std::size_t length = 0;
      while (is_name_character(peek(length))) ++length;
      const bool appends = peek(length) == '+' && peek(length + 1) == '=';
      if (length > 0 && (peek(length) == '=' || appends) && std::isdigit(static_cast<unsigned char>(peek())) == 0) {
        name = std::string(text_.substr(at_, length));
        at_ += length + (appends ? 2 : 1);
        assign(name, peek() == '(' ? read_array() : read_value(), appends);
        return {};
      }
    }
    std::vector<std::string> words = read_pieces();
    exported_ = words.size() == 1 &&
                (words[0] == "export" || words[0] == "declare" || words[0] == "local" || words[0] == "readonly" ||
                 words[0] == "-x") &&
                (first || exported_);
    return words;
  }

  std::string read_value() {
    std::string value;
    for (const std::string& word : read_pieces()) value += (value.empty() ? "" : " ") + word;
    return value;
  }

  std::string read_array() {
    const std::uint32_t line = line_;
    next();
    std::string value;
    while (true) {
      if (at_ >= text_.size()) fail(line, "an array that begins here does not end");
      const char c = peek();
      if (c == ')') break;
      const bool between = is_blank(c) || c == '\n' || (c == '\\' && (peek(1) == '\n'));
      const bool separates = c == ';' || c == '&' || c == '|' || c == '<' || c == '>' || c == '(';
      if (between || separates) {
        next();
      } else if (c == '#') {
        while (at_ < text_.size() && peek() != '\n') next();
      } else {
        for (const std::string& word : read_pieces()) {
          value += value.empty() ? "" : std::string(1, array_mark);
          value += word;
        }
      }
    }
    next();
    return value + array_mark;
  }

  void assign(const std::string& name, std::string value, bool appends) {
    const auto before = variables_.find(name);
    if (appends && before != variables_.end()) value = before->second + value;
    if (value.size() > most_characters) fail(line_, "a variable grows too long");
    // Under a condition nobody knows whether it is.
    if (depth_ > 0 && before != variables_.end() && before->second != value && !appends) value = unknown("$" + name);
    variables_[name] = std::move(value);
  }

  /// What stands together without blanks, as the words that it makes.
  std::vector<std::string> read_pieces() {
    std::vector<std::string> words;
    std::string word;
    bool open = false;  // there is a word, even if it is empty
    const auto add_split = [&](const std::string& value) {
      for (const char c : value) {
        if (is_blank(c) || c == '\n' || c == array_mark) {
          if (open) words.push_back(std::exchange(word, {}));
          open = false;
        } else {
          word += c;
          open = true;
        }
      }
    };
    while (at_ < text_.size()) {
      const char c = peek();
      if (is_blank(c) || c == '\n' || c == ';' || c == '&' || c == '|' || c == '<' || c == '>' || c == ')' || c == '(')
        break;
      if (c == '\\') {
        next();
        if (at_ < text_.size() && next() != '\n') {
          word += text_[at_ - 1];
          open = true;
        }
      } else if (c == '\'') {
        read_single(word);
        open = true;
      } else if (c == '"') {
        open = true;
        read_double(words, word);
      } else if (c == '$' || c == '`') {
        add_split(expand());
      } else {
        word += next();
        open = true;
      }
    }
    if (open) words.push_back(word);
    return words;
  }

  void read_single(std::string& word) {
    const std::uint32_t line = line_;
    next();
    while (peek() != '\'') {
      if (at_ >= text_.size()) fail(line, "a quote ' that begins here does not end");
      word += next();
    }
    next();
  }

  void read_double(std::vector<std::string>& words, std::string& word) {
    const std::uint32_t line = line_;
    next();
    while (peek() != '"') {
      if (at_ >= text_.size()) fail(line, "a quote \" that begins here does not end");
      if (peek() == '\\') {
        next();
        const char c = at_ < text_.size() ? next() : '\0';
        if (c == '\n') continue;
        if (c != '"' && c != '\\' && c != '$' && c != '`') word += '\\';
        word += c;
      } else if (peek() == '$' || peek() == '`') {
        for (const char c : expand()) {
          if (c == array_mark) {
            words.push_back(std::exchange(word, {}));
          } else {
            word += c;
          }
        }
      } else {
        word += next();
      }
    }
    next();
  }

  /// What begins with $ or `.
  std::string expand() {
    const std::size_t begin = at_;
    const std::uint32_t line = line_;
    if (next() == '`') {
      while (peek() != '`') {
        if (at_ >= text_.size()) fail(line, "a command in ` that begins here does not end");
        next();
      }
      next();
      return unknown(text_.substr(begin, at_ - begin));
    }
    if (peek() == '(' && peek(1) == '(') return expand_sum(line);
    if (peek() == '(') {
      skip_nested('(', ')', line);
      return unknown(text_.substr(begin, at_ - begin));
    }
    if (peek() == '{') return expand_braces(begin, line);
    std::string name;
    if (is_name_character(peek()) && std::isdigit(static_cast<unsigned char>(peek())) == 0) {
      while (is_name_character(peek())) name += next();
      return value_of(name);
    }
    if (at_ < text_.size() && !is_blank(peek()) && peek() != '"' && peek() != '\n') {
      const char c = next();
      if (c == '@' || c == '*') return {};
      return unknown(fmt::format("${}", c));
    }
    return "$";
  }

  void skip_nested(char opens, char closes, std::uint32_t line) {
    int depth = 0;
    do {
      if (at_ >= text_.size()) fail(line, "what begins here with $ does not end");
      const char c = next();
      if (c == opens) ++depth;
      if (c == closes) --depth;
    } while (depth > 0);
  }

  std::string value_of(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? unknown("$" + name) : found->second;
  }

  std::string expand_braces(std::size_t begin, std::uint32_t line) {
    skip_nested('{', '}', line);
    const std::string_view whole = text_.substr(begin, at_ - begin);
    const std::string_view inner = whole.substr(2, whole.size() - 3);
    std::size_t length = 0;
    while (length < inner.size() && is_name_character(inner[length])) ++length;
    const std::string name(inner.substr(0, length));
    const std::string_view behind = inner.substr(length);
    if (behind.empty() && !name.empty()) return value_of(name);
    if (behind == "[@]" || behind == "[*]") {
      std::string value = value_of(name);
      if (!value.empty() && value.back() == array_mark) value.pop_back();
      return value;
    }
    const bool is_set = variables_.contains(name) && !variables_.at(name).empty();
    for (const std::string_view mark : {":-", "-", ":="}) {
      if (!behind.starts_with(mark)) continue;
      return is_set ? variables_.at(name) : text_in(behind.substr(mark.size()));
    }
    for (const std::string_view mark : {":+", "+"}) {
      if (behind.starts_with(mark)) return is_set ? text_in(behind.substr(mark.size())) : "";
    }
    return unknown(whole);
  }

  /// The text of a part of the script, with its own variables.
  std::string text_in(std::string_view part) {
    if (nested_ == 20) return unknown(part);
    ShellReader inner(part, file_);
    inner.variables_ = variables_;
    inner.nested_ = nested_ + 1;
    inner.line_ = line_;
    std::string text;
    while (inner.at_ < part.size()) {
      for (const std::string& word : inner.read_pieces()) text += (text.empty() ? "" : " ") + word;
      if (inner.at_ < part.size()) inner.next();
    }
    return text;
  }

  // Sums: + - * / % ( ) of whole numbers and variables, with or without $.

  std::string expand_sum(std::uint32_t line) {
    const std::size_t begin = at_;
    skip_nested('(', ')', line);
    const std::string_view whole = text_.substr(begin, at_ - begin);
    Sum sum{.text = std::string(whole.substr(2, whole.size() - 4)), .reader = *this};
    const std::optional<std::int64_t> value = sum.terms(0);
    if (!value.has_value() || !sum.at_end()) return unknown(fmt::format("${}", whole));
    return std::to_string(*value);
  }

  struct Sum {
    std::string text;
    const ShellReader& reader;
    std::size_t at = 0;

    void skip() {
      while (at < text.size() && (is_blank(text[at]) || text[at] == '\n')) ++at;
    }
    [[nodiscard]] bool at_end() {
      skip();
      return at == text.size();
    }
    bool eat(char c) {
      skip();
      if (at >= text.size() || text[at] != c) return false;
      ++at;
      return true;
    }
    std::optional<std::int64_t> terms(int depth) {
      std::optional<std::int64_t> left = factors(depth);
      while (left.has_value()) {
        const bool plus = eat('+');
        if (!plus && !eat('-')) break;
        const std::optional<std::int64_t> right = factors(depth);
        if (!right.has_value()) return std::nullopt;
        if (plus ? __builtin_add_overflow(*left, *right, &*left) : __builtin_sub_overflow(*left, *right, &*left)) {
          return std::nullopt;
        }
      }
      return left;
    }
    std::optional<std::int64_t> factors(int depth) {
      std::optional<std::int64_t> left = value(depth);
      while (left.has_value()) {
        const char sign = eat('*') ? '*' : eat('/') ? '/' : eat('%') ? '%' : '\0';
        if (sign == '\0') break;
        const std::optional<std::int64_t> right = value(depth);
        if (!right.has_value() || (sign != '*' && (*right == 0 || *right == -1))) return std::nullopt;
        if (sign == '*') {
          if (__builtin_mul_overflow(*left, *right, &*left)) return std::nullopt;
        } else {
          left = sign == '/' ? *left / *right : *left % *right;
        }
      }
      return left;
    }
    std::optional<std::int64_t> value(int depth) {
      if (depth > 50) return std::nullopt;
      if (eat('(')) {
        const std::optional<std::int64_t> inner = terms(depth + 1);
        return eat(')') ? inner : std::nullopt;
      }
      eat('$');
      const bool braces = eat('{');
      std::string word;
      while (at < text.size() && is_name_character(text[at])) word += text[at++];
      if (braces && !eat('}')) return std::nullopt;
      if (word.empty()) return std::nullopt;
      if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return parse_number<std::int64_t>(word);
      const auto found = reader.variables_.find(word);
      return found == reader.variables_.end() ? std::nullopt : parse_number<std::int64_t>(found->second);
    }
  };

  static constexpr std::size_t most_characters = 1 << 20;

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  int depth_ = 0;   // of if, for, case
  int nested_ = 0;  // of texts in texts
  bool exported_ = false;
  std::map<std::string, std::string> variables_;
  ShellScript script_;
};

}  // namespace

ShellScript read_shell_script(const std::string& text, const std::string& file) {
  std::string clean;
  for (const char c : text) {
    if (c != unknown_begin && c != unknown_end && c != array_mark && c != '\r') clean += c;
  }
  return ShellReader(clean, file).run();
}

std::optional<std::string> unknown_part(std::string_view word) {
  const std::size_t begin = word.find(unknown_begin);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = word.find(unknown_end, begin);
  return std::string(word.substr(begin + 1, end == std::string_view::npos ? end : end - begin - 1));
}

std::string readable(std::string_view word) {
  std::string text;
  for (const char c : word) {
    if (c != unknown_begin && c != unknown_end && c != array_mark) text += c;
  }
  return text;
}

}  // namespace hcclsim::study
