#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Small functions for reading text that people wrote and for writing text that programs read.
namespace hcclsim {

/// `text` without the blanks before and behind it.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n") {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// `text` with the small letters of ASCII in place of its capital ones.
[[nodiscard]] std::string in_lower_case(std::string_view text);

/// The parts of `text` between the separators; "a,,b" has an empty part, "" is one.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// The same, each part without the blanks around it.
[[nodiscard]] std::vector<std::string_view> split_trimmed(std::string_view text, char separator);

/// The number that all of `text` stands for; nothing if it is not a number, does not fit the type, or is not finite.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

/// The same for a whole number of at least 1.
template <typename Count>
[[nodiscard]] std::optional<Count> parse_count(std::string_view text) {
  const std::optional<Count> count = parse_number<Count>(text);
  return count == Count{0} ? std::nullopt : count;
}

/// Returns whether the pattern fits the whole of `text`: '*' stands for any characters, '?' for one. The time is at
/// most proportional to the product of both lengths.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);

/// `text` as one word for a shell, quoted where it must be.
[[nodiscard]] std::string shell_word(std::string_view text);

/// Bytes of the character at the beginning of `text`, which is not empty, if it is UTF-8 of a character that text can
/// have (those of XML 1.0: no control character but tab and line ends); else 0.
[[nodiscard]] std::size_t character_bytes(std::string_view text);

/// `text`, which may be anything, for a message: bytes that are not characters, tabs and line ends as \xNN, what is
/// beyond `most` bytes as "…".
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = 200);

/// "12345678" as "12,345,678".
[[nodiscard]] std::string with_thousands(std::uint64_t number);

}  // namespace hcclsim
