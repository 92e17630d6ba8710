#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "study/files/foreign/shell/environment.hpp"
#include "study/files/foreign/shell/syntax.hpp"

// Words with the values of variables in their place.
namespace hcclsim::study {

std::string ShellValue::text() const { return fmt::format("{}", fmt::join(words, " ")); }

std::string shell_unknown(std::string_view what) {
  return fmt::format("{}{}{}", shell_unknown_begin, what, shell_unknown_end);
}

bool is_shell_unknown(std::string_view text) { return text.find(shell_unknown_begin) != std::string_view::npos; }

/// Reads one written word.
class ShellWordReader {
 public:
  ShellWordReader(const ShellEnvironment& environment, std::string_view written, bool splits)
      : environment_(environment), text_(written), splits_(splits) {}

  std::vector<std::string> run() {
    while (at_ < text_.size()) read_part();
    end_word();
    return std::move(fields_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void end_word() {
    if (open_) fields_.push_back(std::exchange(word_, {}));
    open_ = false;
  }
  void add(char c) {
    word_ += c;
    open_ = true;
  }

  void read_part() {
    const char c = text_[at_++];
    if (c == '\\') {
      if (at_ < text_.size() && text_[at_++] != '\n') add(text_[at_ - 1]);
    } else if (c == '\'') {
      open_ = true;
      while (at_ < text_.size() && text_[at_] != '\'') word_ += text_[at_++];
      ++at_;
    } else if (c == '"') {
      read_quoted();
    } else if (c == '$' || c == '`') {
      add_unquoted(read_value(c));
    } else {
      add(c);
    }
  }

  void read_quoted() {
    bool empty_list = false;
    bool other = false;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        const char escaped = text_[at_++];
        if (escaped == '\n') continue;
        if (std::string_view("\"\\$`").find(escaped) == std::string_view::npos) word_ += '\\';
        word_ += escaped;
        other = true;
      } else if (c == '$' || c == '`') {
        const ShellValue value = read_value(c);
        for (std::size_t i = 0; i < value.words.size(); ++i) {
          if (i > 0 && splits_) fields_.push_back(std::exchange(word_, {}));
          if (i > 0 && !splits_) word_ += ' ';
          word_ += value.words[i];
        }
        (value.list && value.words.empty() ? empty_list : other) = true;
      } else {
        word_ += c;
        other = true;
      }
    }
    ++at_;
    open_ = open_ || other || !empty_list;
  }

  void add_unquoted(const ShellValue& value) {
    for (std::size_t i = 0; i < value.words.size(); ++i) {
      if (i > 0) splits_ ? end_word() : add(' ');
      bool known = true;
      for (const char c : value.words[i]) {
        if (c == shell_unknown_begin) known = false;
        if (c == shell_unknown_end) known = true;
        if (splits_ && known && (is_shell_blank(c) || c == '\n'))
          end_word();
        else
          add(c);
      }
    }
  }

  /// What begins with $ or `, which is taken.
  ShellValue read_value(char sign) {
    const std::size_t begin = at_ - 1;
    if (sign == '`') {
      const std::size_t end = std::min(text_.find('`', at_), text_.size());
      const std::string_view inner = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      return environment_.output_of(inner);
    }
    if (peek() == '(' || peek() == '{') {
      const bool sum = peek() == '(' && peek(1) == '(';
      const bool braces = peek() == '{';
      skip_nested(peek(), braces ? '}' : ')');
      const std::string_view whole = text_.substr(begin, at_ - begin);
      if (braces) return environment_.value_in_braces(whole);
      if (!sum || !whole.ends_with("))") || whole.size() < 5)
        return environment_.output_of(whole.substr(2, whole.size() - std::min<std::size_t>(whole.size(), 3)));
      const auto value = environment_.sum(whole.substr(3, whole.size() - 5));
      return {.words = {value.has_value() ? std::to_string(*value) : shell_unknown(whole)}};
    }
    if (is_shell_name_character(peek()) && std::isdigit(static_cast<unsigned char>(peek())) == 0) {
      while (is_shell_name_character(peek())) ++at_;
      ShellValue value = environment_.value_of(std::string(text_.substr(begin + 1, at_ - begin - 1)));
      if (value.list) value = {.words = {value.words.empty() ? "" : value.words.front()}};
      return value;
    }
    if (at_ < text_.size() && !is_shell_blank(peek()) && peek() != '"' && peek() != '\n')
      return environment_.value_of(std::string(1, text_[at_++]));
    return {.words = {"$"}};
  }

  void skip_nested(char opens, char closes) {
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        ++at_;
      } else if (c == '\'' && opens == '(') {
        at_ = std::min(text_.find('\'', at_), text_.size() - 1) + 1;
      } else if (c == opens) {
        ++depth;
      } else if (c == closes && --depth == 0) {
        return;
      }
    }
  }

  const ShellEnvironment& environment_;
  std::string_view text_;
  bool splits_;
  std::size_t at_ = 0;
  std::vector<std::string> fields_;
  std::string word_;
  bool open_ = false;  ///< there is a word, even if it is empty
};

std::vector<std::string> ShellEnvironment::fields(std::string_view written) const {
  return ShellWordReader(*this, written, true).run();
}

std::string ShellEnvironment::text(std::string_view written) const {
  const std::vector<std::string> words = ShellWordReader(*this, written, false).run();
  return words.empty() ? "" : words.front();
}

ShellValue ShellEnvironment::array(std::string_view written) const {
  ShellValue value{.list = true};
  // As a command of which they are the words, where comments and ends of lines do not count.
  std::string inner(written.substr(1, written.size() - std::min<std::size_t>(written.size(), 2)));
  for (const ShellNode& node : parse_shell(inner, "")) {
    for (const std::string& word : node.words) {
      for (std::string& field : fields(word)) value.words.push_back(std::move(field));
    }
  }
  return value;
}

ShellValue ShellEnvironment::value_of(const std::string& name) const {
  const bool number = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
  if (name == "@" || name == "*") return {.list = true, .words = arguments.value_or(std::vector<std::string>{})};
  if (arguments.has_value() && name == "#") return {.words = {std::to_string(arguments->size())}};
  if (arguments.has_value() && number && name != "0") {
    const std::size_t place = parse_number<std::uint32_t>(name).value_or(0);
    return {.words = {place > 0 && place <= arguments->size() ? (*arguments)[place - 1] : ""}};
  }
  const auto found = variables.find(name);
  return found == variables.end() ? ShellValue{.words = {shell_unknown("$" + name)}} : found->second;
}

namespace {

/// The text without the beginning ('#') or end ('%') that a pattern matches; `most`: as much as it matches.
std::string without_match(const std::string& text, const std::string& pattern, char sign, bool most) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t length = most ? text.size() - i : i;
    const bool front = sign == '#';
    const std::string part = front ? text.substr(0, length) : text.substr(text.size() - length);
    if (matches(pattern, part)) return front ? text.substr(length) : text.substr(0, text.size() - length);
  }
  return text;
}

std::string with_replaced(std::string text, const std::string& from, const std::string& to, bool all) {
  std::size_t at = from.empty() ? std::string::npos : text.find(from);
  while (at != std::string::npos && text.size() < 4096) {
    text.replace(at, from.size(), to);
    at = all ? text.find(from, at + to.size()) : std::string::npos;
  }
  return text;
}

}  // namespace

/// "${NAME}" and what may stand behind the name.
ShellValue ShellEnvironment::value_in_braces(std::string_view whole) const {
  ShellValue nothing{.words = {shell_unknown(whole)}};
  std::string_view inner = whole.substr(2, whole.size() - std::min<std::size_t>(whole.size(), 3));
  if (depth_ > 20) return nothing;
  const bool counts = inner.starts_with('#') && inner.size() > 1;
  const bool lists_places = inner.starts_with('!');
  if (counts || lists_places) inner.remove_prefix(1);
  std::size_t length = 0;
  while (length < inner.size() && is_shell_name_character(inner[length])) ++length;
  if (length == 0 && (inner.starts_with('@') || inner.starts_with('*'))) length = 1;
  if (length == 0) return nothing;
  const std::string name(inner.substr(0, length));
  std::string_view behind = inner.substr(length);
  ShellValue value = value_of(name);
  if (behind.starts_with("[@]") || behind.starts_with("[*]")) {
    behind.remove_prefix(3);
    value.list = value.list || variables.contains(name);
    if (counts && behind.empty() && variables.contains(name)) return {.words = {std::to_string(value.words.size())}};
    if (lists_places && behind.empty()) {
      for (std::size_t i = 0; i < value.words.size(); ++i) value.words[i] = std::to_string(i);
      return value;
    }
    return behind.empty() && !counts ? value : nothing;
  }
  if (lists_places) return nothing;
  ++depth_;
  if (behind.starts_with('[') && behind.find(']') != std::string_view::npos) {
    const auto place = sum(behind.substr(1, behind.find(']') - 1));
    behind.remove_prefix(behind.find(']') + 1);
    const bool known = place.has_value() && variables.contains(name);
    const auto size = static_cast<std::int64_t>(value.words.size());
    value = !known ? nothing
            : (*place >= -size && *place < size)
                ? ShellValue{.words = {value.words[static_cast<std::size_t>(*place < 0 ? *place + size : *place)]}}
                : ShellValue{.words = {""}};
  } else if (value.list && name != "@" && name != "*") {
    value = {.words = {value.words.empty() ? "" : value.words.front()}};
  }
  ShellValue result = nothing;
  const std::string now = value.text();
  const bool known = !is_shell_unknown(now);
  // What a caller may give is what it has without one.
  const bool is_set = !now.empty() && (known || variables.contains(name));
  const auto rest = [&](std::size_t count) { return text(behind.substr(count)); };
  if (behind.empty()) {
    result = counts ? (known ? ShellValue{.words = {std::to_string(now.size())}} : nothing) : value;
  } else if (behind.starts_with(":-") || behind.starts_with(":=") || behind.starts_with('-') ||
             behind.starts_with('=')) {
    result = is_set ? value : ShellValue{.words = {rest(behind[0] == ':' ? 2 : 1)}};
  } else if (behind.starts_with(":+") || behind.starts_with('+')) {
    result = {.words = {is_set ? rest(behind[0] == ':' ? 2 : 1) : ""}};
  } else if (behind.starts_with(":?") || behind.starts_with('?')) {
    result = value;
  } else if (known && (behind[0] == '#' || behind[0] == '%')) {
    const bool most = behind.size() > 1 && behind[1] == behind[0];
    result = {.words = {without_match(now, rest(most ? 2 : 1), behind[0], most)}};
  } else if (known && behind[0] == '/') {
    const bool all = behind.starts_with("//");
    const std::string_view parts = behind.substr(all ? 2 : 1);
    const std::size_t mark = std::min(parts.find('/'), parts.size());
    result = {.words = {with_replaced(now, text(parts.substr(0, mark)),
                                      mark < parts.size() ? text(parts.substr(mark + 1)) : "", all)}};
  }
  --depth_;
  return result;
}

/// What some commands print that need nothing but their words.
ShellValue ShellEnvironment::output_of(std::string_view command) const {
  ShellValue nothing{.words = {shell_unknown(fmt::format("$({})", command))}};
  if (depth_ > 20) return nothing;
  ++depth_;
  ShellNodes nodes;
  try {
    nodes = parse_shell(command, "");
  } catch (const Error&) {
    nodes.clear();  // what the shell would not read either
  }
  std::vector<std::string> words;
  if (nodes.size() == 1 && nodes[0].kind == ShellNode::Kind::simple) {
    for (const std::string& word : nodes[0].words) {
      for (std::string& field : fields(word)) words.push_back(std::move(field));
    }
  }
  --depth_;
  const bool known = !words.empty() && std::ranges::none_of(words, is_shell_unknown);
  if (!known) return nothing;
  const std::string name = words[0];
  words.erase(words.begin());
  if (name == "echo") {
    while (!words.empty() && (words[0] == "-n" || words[0] == "-e")) words.erase(words.begin());
    return {.words = {ShellValue{.words = words}.text()}};
  }
  if (name == "expr") {
    const auto value = sum(ShellValue{.words = words}.text());
    return value.has_value() ? ShellValue{.words = {std::to_string(*value)}} : nothing;
  }
  if (name == "seq" && !words.empty() && words.size() < 3) {
    const auto first = words.size() == 1 ? 1 : parse_number<std::int64_t>(words[0]).value_or(1);
    const auto last = parse_number<std::int64_t>(words.back());
    if (!last.has_value() || *last - first > 10000) return nothing;
    std::string text;
    for (std::int64_t i = first; i <= *last; ++i) text += fmt::format("{}{}", i == first ? "" : "\n", i);
    return {.words = {text}};
  }
  if ((name == "basename" || name == "dirname") && !words.empty()) {
    const std::size_t mark = words[0].rfind('/');
    if (mark == std::string::npos) return {.words = {name == "basename" ? words[0] : "."}};
    std::string text = name == "basename" ? words[0].substr(mark + 1) : words[0].substr(0, mark);
    if (name == "basename" && words.size() == 2 && text.ends_with(words[1])) text.resize(text.size() - words[1].size());
    return {.words = {text}};
  }
  return nothing;
}

}  // namespace hcclsim::study
