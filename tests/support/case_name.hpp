#pragma once

#include <string>
#include <string_view>

namespace hcclsim::test {

/// A text as the name of a case of a parameterised test: letters, digits and underscores are all that GoogleTest takes.
[[nodiscard]] inline std::string case_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool taken = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += taken ? c : '_';
  }
  return name;
}

}  // namespace hcclsim::test
