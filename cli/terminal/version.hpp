#pragma once

#include <string_view>

namespace hcclsim::cli {

/// Version of the program, from the file VERSION.
[[nodiscard]] std::string_view version();

}  // namespace hcclsim::cli
