#pragma once

#include <string_view>

/// Small help for those who read text that people wrote.
namespace hcclsim {

/// `text` without the blanks before and behind it.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n") {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace hcclsim
