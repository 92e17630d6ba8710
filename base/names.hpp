#pragma once

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

}  // namespace hcclsim
