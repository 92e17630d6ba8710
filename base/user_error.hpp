#pragma once

#include <exception>
#include <optional>
#include <string_view>

#include "base/error.hpp"

namespace hcclsim {

/// What the standard library throws because of what a user gave: a path that cannot be used ("path"), an input that
/// takes more memory than there is ("memory"). As Error(bad_input); none for anything else.
[[nodiscard]] std::optional<Error> user_error(const std::exception& thrown);

/// Throws Error(bad_input, "resources"): the system has refused a file, process or memory that the program needs, with
/// this error number.
[[noreturn]] void refused_by_system(std::string_view what, int error_number);

}  // namespace hcclsim
