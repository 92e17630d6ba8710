#include "base/user_error.hpp"

#include <cerrno>
#include <cstring>
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

void refused_by_system(std::string_view what, int error_number) {
  const std::string_view limit = error_number == EMFILE   ? "; raise the limit of open files (ulimit -n)"
                                 : error_number == EAGAIN ? "; raise the limit of processes (ulimit -u)"
                                 : error_number == ENOMEM ? "; raise the limit of memory (ulimit -v)"
                                                          : "";
  bad_input("resources", "the system refuses {}: {}{}", what, std::strerror(error_number), limit);
}

}  // namespace hcclsim
