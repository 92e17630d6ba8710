#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.hpp"
#include "study/files/foreign/shell/syntax.hpp"

namespace hcclsim::study {
namespace {

using Stops = std::set<std::string_view>;

bool ends_word(char c) { return std::string_view(" \t\n;&|<>()").find(c) != std::string_view::npos; }

class ShellParser {
 public:
  ShellParser(std::string_view text, const std::string& file, std::uint32_t line)
      : text_(text), file_(file), line_(line) {}

  ShellNodes run() { return read_list({}); }

 private:
  [[noreturn]] void fail(std::uint32_t line, std::string_view what) const {
    bad_input("foreign", "{}:{}: {}", file_, line, what);
  }
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char next() {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
  }
  void skip(std::size_t count) {
    for (; count > 0 && !at_end(); --count) next();
  }

  // Between words.

  void skip_comment() {
    while (!at_end() && peek() != '\n') next();
  }
  /// Blanks and ends of lines that do not count.
  void skip_blanks() {
    while (!at_end() && (is_shell_blank(peek()) || (peek() == '\\' && peek(1) == '\n'))) skip(peek() == '\\' ? 2 : 1);
  }
  void end_line() {
    next();
    for (const auto& [mark, indented] : here_documents_) {
      while (!at_end()) {
        std::string read;
        while (!at_end() && peek() != '\n') read += next();
        if (!at_end()) next();
        if (indented) read.erase(0, std::min(read.find_first_not_of('\t'), read.size()));
        if (read == mark) break;
      }
    }
    here_documents_.clear();
  }
  /// Also ends of lines, comments, and what separates statements.
  void skip_to_statement() {
    while (true) {
      skip_blanks();
      if (peek() == '\n' && !at_end()) {
        end_line();
      } else if (peek() == '#') {
        skip_comment();
      } else if ((peek() == ';' && peek(1) != ';') || peek() == '&' || peek() == '|') {
        next();
      } else {
        return;
      }
    }
  }

  /// A word without quotes and variables that stands here, as reserved words do; it is not taken.
  [[nodiscard]] std::string_view plain_word() const {
    std::size_t end = at_;
    while (end < text_.size() && !ends_word(text_[end])) {
      if (std::string_view("'\"\\$`").find(text_[end]) != std::string_view::npos) return {};
      ++end;
    }
    return text_.substr(at_, end - at_);
  }
  bool take(std::string_view word) {
    skip_to_statement();
    if (plain_word() != word) return false;
    skip(word.size());
    return true;
  }

  // Statements.

  ShellNodes read_list(const Stops& stops) {
    if (++depth_ > 100) fail(line_, "statements stand too deeply in each other");
    ShellNodes nodes;
    ShellJoint joint = ShellJoint::always;
    while (true) {
      skip_to_statement();
      if (at_end()) break;
      if (peek() == ';') {
        if (stops.contains(";;")) break;
        skip(2);
      } else if (peek() == ')') {
        if (stops.contains(")")) break;
        next();
      } else if (stops.contains(plain_word())) {
        break;
      } else {
        const std::size_t before = at_;
        nodes.push_back(read_statement());
        nodes.back().joint = joint;
        joint = read_joint();
        if (at_ == before) next();  // what no statement begins with
      }
    }
    --depth_;
    return nodes;
  }

  /// What stands between two statements.
  ShellJoint read_joint() {
    while (true) {
      skip_blanks();
      if (peek() == '<' || peek() == '>' || (std::isdigit(peek()) != 0 && (peek(1) == '>' || peek(1) == '<'))) {
        if (std::isdigit(peek()) != 0) next();
        read_redirection();
      } else {
        break;
      }
    }
    const bool twice = peek() == peek(1);
    if (peek() == '&' && twice) {
      skip(2);
      return ShellJoint::if_ok;
    }
    if (peek() == '|' && twice) {
      skip(2);
      return ShellJoint::if_failed;
    }
    return ShellJoint::always;
  }

  ShellNode read_statement() {
    ShellNode node;
    while (plain_word() == "!" || plain_word() == "time") {
      node.negated ^= peek() == '!';
      skip(plain_word().size());
      skip_blanks();
    }
    node.line = line_;
    const std::string_view word = plain_word();
    if (word == "if") {
      read_branch(node);
    } else if (word == "for" || word == "select") {
      read_each(node);
    } else if (word == "while" || word == "until") {
      node.kind = ShellNode::Kind::loop;
      node.until = word == "until";
      skip(word.size());
      ShellArm arm{.condition = read_list({"do"})};
      read_body(arm);
      node.arms.push_back(std::move(arm));
    } else if (word == "case") {
      read_choice(node);
    } else if (word == "{" || (peek() == '(' && peek(1) != '(')) {
      node.kind = ShellNode::Kind::group;
      const char* const end = next() == '{' ? "}" : ")";
      node.arms.push_back({.body = read_list({end})});
      if (!at_end()) next();
    } else if (peek() == '(') {
      node.kind = ShellNode::Kind::arithmetic;
      node.words.push_back(read_sum());
    } else if (!read_function(node)) {
      read_command(node);
    }
    return node;
  }

  std::string read_sum() {
    const std::size_t begin = at_;
    skip_nested('(', ')', line_, "a sum that begins here does not end");
    const std::string_view whole = text_.substr(begin, at_ - begin);
    return std::string(whole.size() < 4 ? "" : whole.substr(2, whole.size() - 4));
  }

  void read_branch(ShellNode& node) {
    node.kind = ShellNode::Kind::branch;
    static const Stops ends{"elif", "else", "fi"};
    skip(2);
    while (true) {
      ShellArm arm{.condition = read_list({"then"})};
      take("then");
      arm.body = read_list(ends);
      node.arms.push_back(std::move(arm));
      if (!take("elif")) break;
    }
    if (take("else")) node.arms.push_back({.body = read_list({"fi"})});
    take("fi");
  }

  void read_body(ShellArm& arm) {
    take("do");
    arm.body = read_list({"done"});
    take("done");
  }

  void read_each(ShellNode& node) {
    node.kind = ShellNode::Kind::each;
    skip(plain_word().size());
    skip_blanks();
    if (peek() == '(' && peek(1) == '(') {
      node.kind = ShellNode::Kind::loop;  // of numbers: how often is not followed
      read_sum();
    } else {
      node.name = std::string(plain_word());
      skip(node.name.size());
      if (take("in")) {
        ShellNode list;
        read_command(list);
        node.words = std::move(list.words);
      } else {
        node.words = {"\"$@\""};
      }
    }
    ShellArm arm;
    read_body(arm);
    node.arms.push_back(std::move(arm));
  }

  void read_choice(ShellNode& node) {
    node.kind = ShellNode::Kind::choice;
    skip(4);
    skip_blanks();
    node.words.push_back(read_word());
    take("in");
    while (true) {
      skip_to_statement();
      if (at_end() || take("esac")) return;
      if (peek() == '(') next();
      ShellArm arm;
      while (!at_end() && peek() != ')' && peek() != '\n') {
        skip_blanks();
        if (peek() == '|') {
          next();
        } else if (peek() != ')' && peek() != '\n' && !at_end()) {
          const std::size_t before = at_;
          arm.patterns.push_back(read_word());
          if (at_ == before) next();
        }
      }
      if (!at_end()) next();
      arm.body = read_list({";;", "esac"});
      node.arms.push_back(std::move(arm));
      if (peek() == ';') skip(peek(2) == '&' ? 3 : 2);
    }
  }

  /// "function NAME" or "NAME ()" with what it does; takes nothing if it is neither.
  bool read_function(ShellNode& node) {
    const std::size_t at = at_;
    const std::uint32_t line = line_;
    const bool told = plain_word() == "function";
    if (told) {
      skip(plain_word().size());
      skip_blanks();
    }
    const std::string name(plain_word());
    skip(name.size());
    skip_blanks();
    const bool brackets = peek() == '(' && peek(1) == ')';
    if (name.empty() || name.find('=') != std::string::npos || (!told && !brackets)) {
      at_ = at;
      line_ = line;
      return false;
    }
    if (brackets) skip(2);
    skip_to_statement();
    node.kind = ShellNode::Kind::function;
    node.name = name;
    if (++depth_ > 100) fail(line_, "statements stand too deeply in each other");
    ShellArm arm;
    if (!at_end()) arm.body.push_back(read_statement());
    --depth_;
    node.arms.push_back(std::move(arm));
    return true;
  }

  /// Words as far as the end of the line or a separator.
  void read_command(ShellNode& node) {
    while (true) {
      skip_blanks();
      const char c = peek();
      if (at_end() || c == '\n' || c == ';' || c == '|' || c == ')' || (c == '&' && peek(1) != '>')) return;
      if (c == '#') return skip_comment();
      if (c == '<' || c == '>' || c == '&') {
        if (c == '&') next();
        read_redirection();
      } else if (c == '(') {
        next();
      } else if (node.words.empty() && plain_word() == "[[") {
        read_condition(node);
      } else {
        std::string word = read_word();
        // "2>" is one sign.
        const bool number = (peek() == '<' || peek() == '>') &&
                            std::ranges::all_of(word, [](unsigned char digit) { return std::isdigit(digit) != 0; });
        if (!number) node.words.push_back(std::move(word));
      }
    }
  }

  /// Between [[ and ]], where signs are words.
  void read_condition(ShellNode& node) {
    while (!at_end() && peek() != '\n') {
      skip_blanks();
      const char c = peek();
      if (at_end() || c == '\n') return;
      if ((c == '&' || c == '|') && peek(1) == c) {
        node.words.emplace_back(text_.substr(at_, 2));
        skip(2);
      } else if (ends_word(c)) {
        node.words.emplace_back(1, next());
      } else {
        node.words.push_back(read_word());
        if (node.words.back() == "]]") return;
      }
    }
  }

  void read_redirection() {
    const char sign = next();
    if (sign == '<' && peek() == '<' && peek(1) != '<') return read_here_document();
    while (peek() == '>' || peek() == '<' || peek() == '&' || peek() == '|') next();
    skip_blanks();
    if (peek() == '<' || peek() == '>') next();  // > >(command)
    if (peek() == '(')
      skip_nested('(', ')', line_, "what begins here with ( does not end");
    else
      read_word();
  }

  void read_here_document() {
    next();
    const bool indented = peek() == '-';
    if (indented) next();
    skip_blanks();
    std::string mark = read_word();
    std::erase_if(mark, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
    here_documents_.emplace_back(std::move(mark), indented);
  }

  // Words.

  std::string read_word() {
    const std::size_t begin = at_;
    while (!at_end()) {
      const char c = peek();
      if (c == '(' && shell_assignment_length(text_.substr(begin, at_ - begin)) == at_ - begin && at_ > begin) {
        skip_array();
      } else if (ends_word(c)) {
        break;
      } else {
        skip_part();
      }
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// One character, or what it encloses.
  void skip_part() {
    const std::uint32_t line = line_;
    const char c = next();
    if (c == '\\') {
      skip(1);
    } else if (c == '\'') {
      skip_to('\'', line, "a quote ' that begins here does not end");
    } else if (c == '`') {
      skip_to('`', line, "a command in ` that begins here does not end");
    } else if (c == '"') {
      while (peek() != '"') {
        if (at_end()) fail(line, "a quote \" that begins here does not end");
        if (peek() == '\'')
          next();
        else
          skip_part();
      }
      next();
    } else if (c == '$' && (peek() == '(' || peek() == '{')) {
      if (++depth_ > 100) fail(line_, "what begins with $ stands too deeply in each other");
      skip_nested(peek(), peek() == '(' ? ')' : '}', line, "what begins here with $ does not end");
      --depth_;
    }
  }

  void skip_to(char end, std::uint32_t line, std::string_view message) {
    while (peek() != end) {
      if (at_end()) fail(line, message);
      next();
    }
    next();
  }

  void skip_nested(char opens, char closes, std::uint32_t line, std::string_view message) {
    int depth = 0;
    do {
      if (at_end()) fail(line, message);
      const char c = peek();
      if (c == opens) ++depth;
      if (c == closes) --depth;
      const bool encloses = c == '"' || c == '\\' || (opens == '(' && (c == '\'' || c == '`'));
      if (encloses)
        skip_part();
      else
        next();
    } while (depth > 0);
  }

  void skip_array() {
    const std::uint32_t line = line_;
    next();
    bool between = true;
    while (peek() != ')') {
      if (at_end()) fail(line, "an array that begins here does not end");
      if (between && peek() == '#') {
        skip_comment();
        continue;
      }
      between = is_shell_blank(peek()) || peek() == '\n';
      skip_part();
    }
    next();
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::uint32_t line_;
  int depth_ = 0;
  std::vector<std::pair<std::string, bool>> here_documents_;  ///< that begin behind this line: mark, and "<<-"
};

}  // namespace

bool is_shell_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t shell_assignment_length(std::string_view word) {
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) != 0) return 0;
  std::size_t length = 0;
  while (length < word.size() && is_shell_name_character(word[length])) ++length;
  if (length == 0) return 0;
  if (word.substr(length).starts_with("+=")) return length + 2;
  return word.substr(length).starts_with('=') ? length + 1 : 0;
}

ShellNodes parse_shell(std::string_view text, const std::string& file, std::uint32_t line) {
  return ShellParser(text, file, line).run();
}

}  // namespace hcclsim::study
