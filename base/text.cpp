#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hcclsim {

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_trimmed(std::string_view text, char separator) {
  std::vector<std::string_view> parts = split(text, separator);
  for (std::string_view& part : parts) part = trimmed(part);
  return parts;
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;  // the last one, which took the text up to `taken`
  std::size_t taken = 0;
  for (std::size_t t = 0; t < text.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./%@";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + '\'';
}

std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  char32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> least_code{0, 0, 0x80, 0x800, 0x10000};  // by length
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool none = code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return code < least_code.at(length) || surrogate || none ? 0 : length;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_bytes(text.substr(at));
    const bool shown = length > 0 && static_cast<unsigned char>(text[at]) >= 0x20 && text[at] != '\x7F';
    const std::string piece =
        shown ? std::string(text.substr(at, length)) : fmt::format("\\x{:02X}", static_cast<unsigned char>(text[at]));
    if (result.size() + piece.size() > most) return result + "…";
    result += piece;
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

std::string with_thousands(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t position = digits.size(); position > 3;) {
    position -= 3;
    digits.insert(position, 1, ',');
  }
  return digits;
}

}  // namespace hcclsim
