#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text.hpp"

/// Numbers in the fields of options of the form "kind:value:value".
namespace hcclsim::device {

/// `text` as a whole number of at least 1; nothing if it is anything else.
[[nodiscard]] inline std::optional<std::uint64_t> parse_count(std::string_view text) {
  const std::optional<std::uint64_t> count = parse_number<std::uint64_t>(text);
  return count == std::uint64_t{0} ? std::nullopt : count;
}

}  // namespace hcclsim::device
