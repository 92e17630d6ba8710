#pragma once

#include <filesystem>

#include "base/error.hpp"

namespace hcclsim {

/// What std::filesystem could not do with a path of the user's: Error(bad_input, "path") that names it.
[[nodiscard]] Error path_error(const std::filesystem::filesystem_error& error);

}  // namespace hcclsim
