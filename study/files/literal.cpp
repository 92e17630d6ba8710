#include "study/files/literal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "base/files/nesting.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

Literal text_literal(std::string text) { return {.kind = Literal::Kind::text, .text = std::move(text)}; }
Literal bool_literal(bool value) { return {.kind = Literal::Kind::boolean, .boolean = value}; }

/// As Python prints it.
std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + quote;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto byte = [&](std::uint32_t bits) { text += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0U | (code >> 6U));
  } else {
    if (code < 0x10000) {
      byte(0xE0U | (code >> 12U));
    } else {
      byte(0xF0U | (code >> 18U));
      byte(0x80U | ((code >> 12U) & 0x3FU));
    }
    byte(0x80U | ((code >> 6U) & 0x3FU));
  }
  byte(0x80U | (code & 0x3FU));
}

/// Python's int: of base 16, 8, 2 or 10, with single underscores between digits; nothing if it is none.
std::optional<Literal> integer_of(std::string_view number) {
  const bool negative = number.starts_with('-');
  if (negative || number.starts_with('+')) number.remove_prefix(1);
  int base = 10;
  const std::string prefix = in_lower_case(number.substr(0, 2));
  if (prefix == "0x") base = 16;
  if (prefix == "0o") base = 8;
  if (prefix == "0b") base = 2;
  if (base != 10) number.remove_prefix(number.starts_with("0") && number.substr(2).starts_with('_') ? 3 : 2);
  std::string digits;
  for (std::size_t i = 0; i < number.size(); ++i) {
    const bool between = i > 0 && i + 1 < number.size() && number[i - 1] != '_';
    if (number[i] != '_') digits += number[i];
    if (number[i] == '_' && !between) return std::nullopt;
  }
  const bool zeros = digits.find_first_not_of('0') == std::string::npos;
  if (digits.empty() || (base == 10 && digits.front() == '0' && !zeros)) return std::nullopt;
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size, base);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return std::nullopt;
  constexpr auto largest = static_cast<std::uint64_t>(INT64_MAX);
  if (error == std::errc() && size <= largest) {
    const auto value = static_cast<std::int64_t>(size);
    return Literal{.kind = Literal::Kind::integer, .integer = negative ? -value : value};
  }
  const std::string all = base == 10 ? digits : fmt::format("{}{}", prefix, digits);
  return Literal{
      .kind = Literal::Kind::integer, .integer = negative ? INT64_MIN : INT64_MAX, .text = (negative ? "-" : "") + all};
}

}  // namespace

bool less(const Literal& one, const Literal& other) {
  if (one.integer != other.integer) return one.integer < other.integer;
  const bool smaller =
      one.text.size() != other.text.size() ? one.text.size() < other.text.size() : one.text < other.text;
  const bool larger = one.text != other.text && !smaller;
  return one.integer < 0 ? larger : smaller;
}

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
      return literal.text.empty() ? fmt::format("{}", literal.integer) : literal.text;
    case Literal::Kind::real:
      return fmt::format("{}", literal.real);
    case Literal::Kind::text:
      return quoted(literal.text);
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
  if (json.is_number_integer()) return *parse_literal(json.dump());
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

Json json_of(const Literal& literal) {
  Json json;
  switch (literal.kind) {
    case Literal::Kind::none:
      break;
    case Literal::Kind::boolean:
      return literal.boolean;
    case Literal::Kind::integer:
      return literal.text.empty() ? Json(literal.integer) : Json(literal.text);
    case Literal::Kind::real:
      return literal.real;
    case Literal::Kind::text:
      return literal.text;
    case Literal::Kind::list:
    case Literal::Kind::tuple:
      json = Json::array();
      for (const Literal& item : literal.items) json.push_back(json_of(item));
      break;
    case Literal::Kind::dict:
      json = Json::object();
      for (const auto& [key, value] : literal.members) json.append(key, json_of(value));
      break;
  }
  return json;
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

std::string_view LiteralReader::dotted_name() {
  const std::size_t begin = place_;
  while (place_ < text_.size() && (is_name(peek()) || peek() == '.')) advance();
  return text_.substr(begin, place_ - begin);
}

std::optional<Literal> LiteralReader::read(unsigned depth) {
  if (depth > deepest_nesting) return fail(fmt::format("brackets are more than {} deep", deepest_nesting));
  skip_blanks();
  const char c = peek();
  if (begins_text()) return read_texts();
  if (c == '[') return read_items(']', Literal::Kind::list, depth);
  if (c == '(') return read_items(')', Literal::Kind::tuple, depth);
  if (c == '{') return read_dict(depth);
  if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.') return read_number();
  return read_word(depth);
}

bool LiteralReader::begins_text() const {
  const auto is_quote = [](char c) { return c == '\'' || c == '"'; };
  if (is_quote(peek())) return true;
  constexpr std::string_view prefixes = "rRuU";
  return prefixes.find(peek()) != std::string_view::npos && peek() != '\0' && place_ + 1 < text_.size() &&
         is_quote(text_[place_ + 1]);
}

std::optional<Literal> LiteralReader::read_texts() {
  std::string text;
  std::size_t end = place_;
  while (begins_text()) {
    if (!add_text(text)) return std::nullopt;
    end = place_;
    skip_blanks();
  }
  place_ = end;
  return text_literal(std::move(text));
}

bool LiteralReader::add_text(std::string& text) {
  const bool raw = peek() == 'r' || peek() == 'R';
  if (peek() != '\'' && peek() != '"') advance();
  const std::string three(3, peek());
  const std::string_view quotes = std::string_view(three).substr(0, text_.substr(place_).starts_with(three) ? 3 : 1);
  place_ += quotes.size();
  while (place_ < text_.size() && (quotes.size() == 3 || peek() != '\n')) {
    if (text_.substr(place_).starts_with(quotes)) {
      place_ += quotes.size();
      return true;
    }
    if (peek() == '\\' && raw) {
      text += peek();
      advance();
    } else if (peek() == '\\') {
      advance();
      if (!add_escape(text)) return false;
      continue;
    }
    text += peek();
    advance();
  }
  fail("a text does not end");
  return false;
}

bool LiteralReader::add_escape(std::string& text) {
  constexpr std::string_view letters = "abfnrtv\\'\"";
  constexpr std::string_view meant = "\a\b\f\n\r\t\v\\'\"";
  const char c = peek();
  if (place_ >= text_.size()) {
    fail("a text does not end");
    return false;
  }
  const auto code = [&](std::size_t first, std::size_t most, int base) -> std::optional<std::uint32_t> {
    const std::string_view digits = text_.substr(std::min(first, text_.size()), most);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    const auto count = static_cast<std::size_t>(end - digits.data());
    if (error != std::errc() || (base == 16 && count != most) || value > 0x10FFFF) return std::nullopt;
    place_ = first + count;
    return value;
  };
  if (const std::size_t found = letters.find(c); found != std::string_view::npos) {
    text += meant[found];
  } else if (c == 'x' || c == 'u' || c == 'U') {
    auto value = code(place_ + 1, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    const bool first_half = value.has_value() && *value >= 0xD800 && *value < 0xDC00;
    if (first_half && syntax_.json && text_.substr(place_).starts_with("\\u")) {
      const auto second = code(place_ + 2, 4, 16);
      if (second.has_value()) value = 0x10000 + ((*value - 0xD800) << 10U) + ((*second - 0xDC00) & 0x3FFU);
    }
    if (!value.has_value()) {
      fail(fmt::format("'\\{}' of a text is no character", c));
      return false;
    }
    append_utf8(text, *value);
    return true;
  } else if (c >= '0' && c <= '7') {
    append_utf8(text, code(place_, 3, 8).value_or(0));
    return true;
  } else if (c != '\n') {
    if (c != '/' || !syntax_.json) text += '\\';
    text += c;
  }
  advance();
  return true;
}

std::optional<Literal> LiteralReader::read_number() {
  const std::size_t begin = place_;
  if (peek() == '-' || peek() == '+') advance();
  const auto is_sign_of_exponent = [&] {
    const char before = text_[place_ - 1];
    const bool hexadecimal = in_lower_case(text_.substr(begin, place_ - begin)).find('x') != std::string::npos;
    return (peek() == '-' || peek() == '+') && (before == 'e' || before == 'E') && !hexadecimal;
  };
  while (place_ < text_.size() && (is_name(peek()) || peek() == '.' || is_sign_of_exponent())) advance();
  std::string_view number = text_.substr(begin, place_ - begin);
  if (auto integer = integer_of(number)) return integer;
  if (number.starts_with('+')) number.remove_prefix(1);
  const auto real = parse_number<double>(number);
  const bool exact = number.find_first_of(".eE") != std::string_view::npos;
  if (!real.has_value() || !exact) return fail(fmt::format("'{}' is no number", number));
  return Literal{.kind = Literal::Kind::real, .real = *real};
}

std::optional<Literal> LiteralReader::read_word(unsigned depth) {
  const std::string_view word = dotted_name();
  if (syntax_.json) {
    if (word == "null") return Literal{};
    if (word == "true" || word == "false") return bool_literal(word == "true");
  } else {
    if (word == "None") return Literal{};
    if (word == "True" || word == "False") return bool_literal(word == "True");
    if (word == "dict") return read_dict_call(depth);
  }
  const std::size_t dot = word.rfind('.');
  if (dot != std::string_view::npos) {
    const std::string_view owner = word.substr(0, dot);
    const std::string_view last = owner.substr(owner.rfind('.') + 1);
    if (std::ranges::find(syntax_.mode_names, last) != syntax_.mode_names.end()) {
      return text_literal(in_lower_case(word.substr(dot + 1)));
    }
  }
  if (word.empty()) return fail(fmt::format("'{}' begins no literal", printable(std::string(1, peek()))));
  const bool prefixed = peek() == '\'' || peek() == '"';
  return fail(prefixed ? fmt::format("a text with the prefix '{}' is no literal", word)
                       : fmt::format("'{}' is no literal", word));
}

std::optional<Literal> LiteralReader::read_dict_call(unsigned depth) {
  skip_blanks();
  if (peek() != '(') return fail("'dict' is no literal");
  Literal literal{.kind = Literal::Kind::dict};
  bool comma = true;
  for (advance();;) {
    skip_blanks();
    if (peek() == ')') break;
    if (!comma) return fail("a comma is missing");
    const std::string key(name());
    skip_blanks();
    if (key.empty() || peek() != '=') return fail("dict() is read with keywords only");
    advance();
    if (literal.find(key) != nullptr) return fail(fmt::format("keyword '{}' is repeated", key));
    auto value = read(depth + 1);
    if (!value.has_value()) return std::nullopt;
    literal.members.emplace_back(key, std::move(*value));
    skip_blanks();
    comma = peek() == ',';
    if (comma) advance();
  }
  advance();
  return literal;
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
    const auto same = std::ranges::find(literal.members, key->text, &std::pair<std::string, Literal>::first);
    if (same == literal.members.end()) {
      literal.members.emplace_back(key->text, std::move(*value));
    } else {
      same->second = std::move(*value);  // as in Python
    }
    skip_blanks();
    comma = peek() == ',';
    if (comma) advance();
  }
  advance();
  return literal;
}

std::optional<Literal> parse_literal(std::string_view text) {
  const std::string word = in_lower_case(trimmed(text));
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
