#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.hpp"

namespace hcclsim::fuzz {

/// A folder for readers that want names, which goes with the object.
class ScratchFolder {
 public:
  ScratchFolder() : path_((std::filesystem::temp_directory_path() / "hcclsim_XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) internal_error("{} cannot be made", path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path_of(std::string_view name) const { return path_ + "/" + std::string(name); }
  /// Writes a file, or writes it anew.
  void write(std::string_view name, std::string_view contents) const {
    std::ofstream(path_of(name), std::ios::binary) << contents;
  }

 private:
  std::string path_;
};

}  // namespace hcclsim::fuzz
