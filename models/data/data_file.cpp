#include "models/data/data_file.hpp"

#include <array>
#include <filesystem>
#include <system_error>

namespace hcclsim::models {

InputFile open_data_file(const std::string& path) {
  InputFile file(path, "data");
  if (file.size() == 0) file.fail("the file is empty");
  std::array<std::byte, 2> begin{};
  const bool gzip = file.read_some(0, begin).size() == 2 && begin[0] == std::byte{0x1f} && begin[1] == std::byte{0x8b};
  if (gzip) file.fail("the file is compressed with gzip; unpack it first (gunzip, tar xzf)");
  return file;
}

void require_folder(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return;
  const bool exists = std::filesystem::exists(path, ignored);
  bad_input("data", "{} {}", exists ? "not a folder:" : "there is no folder", path);
}

}  // namespace hcclsim::models
