#include "base/user_error.hpp"

#include <filesystem>
#include <new>

#include "base/text.hpp"

namespace hcclsim {

std::optional<Error> user_error(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) {
    return Error(ErrorCode::bad_input, "memory",
                 "this takes more memory than there is: give a smaller input, or fewer ranks");
  }
  if (const auto* const error = dynamic_cast<const std::filesystem::filesystem_error*>(&thrown)) {
    constexpr std::size_t most = 120;  // characters of a path, which may be long
    const std::string path = printable(error->path1().string(), most);
    return Error(ErrorCode::bad_input, "path", fmt::format("cannot use {}: {}", path, error->code().message()));
  }
  return std::nullopt;
}

}  // namespace hcclsim
