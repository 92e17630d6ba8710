#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hcclsim {

/// "a, b, c": the same member of all rows of a table.
template <typename Rows, typename Member>
[[nodiscard]] std::string names_in(const Rows& rows, Member member, std::string_view separator = ", ") {
  std::string text;
  for (const auto& row : rows) text.append(text.empty() ? "" : separator).append(std::invoke(member, row));
  return text;
}

/// A number and what it counts: "1 axis", "2 axes". `many`: the word for other numbers than 1; empty: `one` with s.
[[nodiscard]] inline std::string counted(std::uint64_t number, std::string_view one, std::string_view many = {}) {
  std::string text = std::to_string(number) + ' ';
  if (number == 1 || many.empty()) return text.append(one).append(number == 1 ? "" : "s");
  return text.append(many);
}

}  // namespace hcclsim
