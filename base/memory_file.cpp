#include "base/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/memory_file_name.hpp"
#include "base/user_error.hpp"

namespace hcclsim {

namespace {

constexpr std::string_view open_files = "/proc/self/fd/";

}  // namespace

MemoryFile::MemoryFile(const std::string& text, const std::string& title)
    : file_(::memfd_create(title.c_str(), MFD_CLOEXEC)) {
  const bool held = file_ >= 0 && (std::ofstream(path()) << text).flush();
  if (!held) refused_by_system("a file in memory", errno);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

MemoryFile::~MemoryFile() {
  if (file_ >= 0) ::close(file_);
}

std::string MemoryFile::path() const { return fmt::format("{}{}", open_files, file_); }

std::string without_memory_files(std::string_view text) {
  std::string out;
  for (std::size_t at = text.find(open_files); at != std::string_view::npos; at = text.find(open_files)) {
    out += fmt::format("{}-", text.substr(0, at));
    text.remove_prefix(at + open_files.size());
    text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
  }
  return out.append(text);
}

bool is_memory_file(std::string_view path) { return path.starts_with(open_files); }

std::string memory_file_title(const std::string& path) {
  constexpr std::string_view before = "/memfd:";
  constexpr std::string_view after = " (deleted)";
  std::error_code ignored;
  std::string name = std::filesystem::read_symlink(path, ignored);
  if (!name.starts_with(before) || !name.ends_with(after)) return "a pipe";
  return name.substr(before.size(), name.size() - before.size() - after.size());
}

std::string MemoryFile::keep() && {
  std::string kept = path();
  file_ = -1;
  return kept;
}

std::string MemoryFile::keep_for_programs() && {
  ::fcntl(file_, F_SETFD, 0);
  return std::move(*this).keep();
}

}  // namespace hcclsim
