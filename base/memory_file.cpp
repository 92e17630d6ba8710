#include "base/memory_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/error.hpp"

namespace hcclsim {

MemoryFile::MemoryFile(const std::string& text) : file_(::memfd_create("hcclsim", MFD_CLOEXEC)) {
  const bool held = file_ >= 0 && (std::ofstream(path()) << text).flush();
  if (!held) internal_error("cannot hold a file in memory: {}", std::strerror(errno));
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

MemoryFile::~MemoryFile() {
  if (file_ >= 0) ::close(file_);
}

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", file_); }

std::string MemoryFile::keep() && {
  std::string kept = path();
  file_ = -1;
  return kept;
}

}  // namespace hcclsim
