#pragma once

#include <exception>
#include <optional>

#include "base/error.hpp"

namespace hcclsim {

/// What the standard library throws because of what a user gave: a path that cannot be used ("path"), an input that
/// takes more memory than there is ("memory"). As Error(bad_input); none for anything else.
[[nodiscard]] std::optional<Error> user_error(const std::exception& thrown);

}  // namespace hcclsim
