#include "base/path_error.hpp"

#include "base/text.hpp"

namespace hcclsim {

Error path_error(const std::filesystem::filesystem_error& error) {
  constexpr std::size_t most = 120;  // characters of a path, which may be long
  const std::string path = printable(error.path1().string(), most);
  return Error(ErrorCode::bad_input, "path", fmt::format("cannot use {}: {}", path, error.code().message()));
}

}  // namespace hcclsim
