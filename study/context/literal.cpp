#include "study/context/literal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"

namespace hcclsim::study {
namespace {

constexpr unsigned deepest = 64;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

Literal text_literal(std::string text) { return {.kind = Literal::Kind::text, .text = std::move(text)}; }
Literal bool_literal(bool value) { return {.kind = Literal::Kind::boolean, .boolean = value}; }

std::string lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

const Literal* Literal::find(std::string_view key) const {
  const auto found = std::ranges::find_if(members, [&](const auto& member) { return member.first == key; });
  return found == members.end() ? nullptr : &found->second;
}

std::string_view name_of(Literal::Kind kind) {
  constexpr std::array<std::string_view, 8> names{"None", "bool", "int", "float", "str", "list", "tuple", "dict"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string to_string(const Literal& literal) {
  const auto joined = [&] {
    std::string text;
    for (const Literal& item : literal.items) text += (text.empty() ? "" : ", ") + to_string(item);
    return text;
  };
  switch (literal.kind) {
    case Literal::Kind::none:
      return "None";
    case Literal::Kind::boolean:
      return literal.boolean ? "True" : "False";
    case Literal::Kind::integer:
      return fmt::format("{}", literal.integer);
    case Literal::Kind::real:
      return fmt::format("{}", literal.real);
    case Literal::Kind::text:
      return fmt::format("'{}'", literal.text);
    case Literal::Kind::list:
      return "[" + joined() + "]";
    case Literal::Kind::tuple:
      return "(" + joined() + (literal.items.size() == 1 ? ",)" : ")");
    case Literal::Kind::dict:
      break;
  }
  std::string text;
  for (const auto& [key, value] : literal.members) {
    text += fmt::format("{}'{}': {}", text.empty() ? "" : ", ", key, to_string(value));
  }
  return "{" + text + "}";
}

Literal literal_of(const Json& json) {
  if (json.is_boolean()) return bool_literal(json.get<bool>());
  if (json.is_number_integer()) return {.kind = Literal::Kind::integer, .integer = json.get<std::int64_t>()};
  if (json.is_number()) return {.kind = Literal::Kind::real, .real = json.get<double>()};
  if (json.is_string()) return text_literal(json.text());
  Literal literal;
  if (json.is_array()) {
    literal.kind = Literal::Kind::list;
    for (const Json& item : json) literal.items.push_back(literal_of(item));
  } else if (json.is_object()) {
    literal.kind = Literal::Kind::dict;
    for (const auto& [key, value] : json.items()) literal.members.emplace_back(key, literal_of(value));
  }
  return literal;
}

std::nullopt_t LiteralReader::fail(std::string why) {
  if (problem_.empty()) problem_ = std::move(why);
  return std::nullopt;
}

void LiteralReader::skip_blanks() {
  while (place_ < text_.size()) {
    if (text_[place_] == '#') {
      while (place_ < text_.size() && text_[place_] != '\n') ++place_;
    } else if (std::isspace(static_cast<unsigned char>(text_[place_])) != 0 || text_[place_] == '\\') {
      ++place_;
    } else {
      return;
    }
  }
}

std::string_view LiteralReader::name() {
  const std::size_t begin = place_;
  while (place_ < text_.size() && is_name(text_[place_])) ++place_;
  return text_.substr(begin, place_ - begin);
}

std::optional<Literal> LiteralReader::read(unsigned depth) {
  if (depth > deepest) return fail("brackets are nested too deeply");
  skip_blanks();
  const char c = peek();
  if (c == '\'' || c == '"') return read_text();
  if (c == '[') return read_items(']', Literal::Kind::list, depth);
  if (c == '(') return read_items(')', Literal::Kind::tuple, depth);
  if (c == '{') return read_dict(depth);
  if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.') return read_number();
  return read_word();
}

std::optional<Literal> LiteralReader::read_text() {
  const char quote = peek();
  std::string text;
  for (advance(); place_ < text_.size() && peek() != '\n'; advance()) {
    if (peek() == quote) {
      advance();
      return text_literal(std::move(text));
    }
    if (peek() == '\\') advance();
    text += peek();
  }
  return fail("a text does not end");
}

std::optional<Literal> LiteralReader::read_number() {
  const std::size_t begin = place_;
  while (place_ < text_.size() && (is_name(peek()) || peek() == '.' || peek() == '-' || peek() == '+')) advance();
  std::string_view number = text_.substr(begin, place_ - begin);
  if (number.starts_with('+')) number.remove_prefix(1);
  if (const auto integer = parse_number<std::int64_t>(number)) {
    return Literal{.kind = Literal::Kind::integer, .integer = *integer};
  }
  const auto real = parse_number<double>(number);
  if (!real.has_value()) return fail(fmt::format("'{}' is no number", number));
  return Literal{.kind = Literal::Kind::real, .real = *real};
}

std::optional<Literal> LiteralReader::read_word() {
  const std::size_t begin = place_;
  while (place_ < text_.size() && (is_name(peek()) || peek() == '.')) advance();
  const std::string_view word = text_.substr(begin, place_ - begin);
  if (word == "None") return Literal{};
  if (word == "True" || word == "False") return bool_literal(word == "True");
  const std::size_t dot = word.rfind('.');
  if (dot != std::string_view::npos && word.substr(0, dot).ends_with("ParallelMode")) {
    return text_literal(lower(word.substr(dot + 1)));
  }
  return fail(word.empty() ? fmt::format("'{}' begins no literal", peek()) : fmt::format("'{}' is no literal", word));
}

std::optional<Literal> LiteralReader::read_items(char close, Literal::Kind kind, unsigned depth) {
  Literal literal{.kind = kind};
  bool comma = false;
  for (advance();;) {
    skip_blanks();
    if (peek() == close) break;
    if (!literal.items.empty() && !comma) return fail("a comma is missing");
    auto item = read(depth + 1);
    if (!item.has_value()) return item;
    literal.items.push_back(std::move(*item));
    skip_blanks();
    comma = peek() == ',';
    if (comma) advance();
    if (place_ >= text_.size()) return fail("a bracket does not close");
  }
  advance();
  // Brackets around one value are no tuple.
  if (kind == Literal::Kind::tuple && literal.items.size() == 1 && !comma) return std::move(literal.items.front());
  return literal;
}

std::optional<Literal> LiteralReader::read_dict(unsigned depth) {
  Literal literal{.kind = Literal::Kind::dict};
  bool comma = true;
  for (advance();;) {
    skip_blanks();
    if (peek() == '}') break;
    if (!comma) return fail("a comma is missing");
    if (place_ >= text_.size()) return fail("a brace does not close");
    const auto key = read(depth + 1);
    if (!key.has_value()) return std::nullopt;
    if (key->kind != Literal::Kind::text) return fail("a key is no text");
    skip_blanks();
    if (peek() != ':') return fail("a colon is missing");
    advance();
    auto value = read(depth + 1);
    if (!value.has_value()) return std::nullopt;
    literal.members.emplace_back(key->text, std::move(*value));
    skip_blanks();
    comma = peek() == ',';
    if (comma) advance();
  }
  advance();
  return literal;
}

std::optional<Literal> parse_literal(std::string_view text) {
  const std::string word = lower(trimmed(text));
  if (word == "on" || word == "true") return bool_literal(true);
  if (word == "off" || word == "false") return bool_literal(false);
  LiteralReader reader(text);
  std::optional<Literal> literal = reader.read();
  reader.skip_blanks();
  if (literal.has_value() && reader.place() == text.size()) return literal;
  const std::string_view bare = trimmed(text);
  const bool begins_literal = bare.empty() || std::string_view("[({'\"").find(bare.front()) != std::string_view::npos;
  if (begins_literal) return std::nullopt;
  return text_literal(std::string(bare));
}

}  // namespace hcclsim::study
