#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hcclsim {

/// A number and what it counts: "1 axis", "2 axes". `many`: the word for any other number than 1; empty: `one` with s.
[[nodiscard]] inline std::string counted(std::uint64_t number, std::string_view one, std::string_view many = {}) {
  if (number == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, many);
}

}  // namespace hcclsim
