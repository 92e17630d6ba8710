#include "base/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace hcclsim {

OutputFile::OutputFile(const std::string& path) : path_(path), target_(path) {
  namespace fs = std::filesystem;
  if (path.empty()) bad_input("output", "the path of an output file is empty");
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) fail(EISDIR);
  if (fs::exists(status)) {
    if (::access(path.c_str(), W_OK) != 0) fail(errno);
    target_ = fs::canonical(path, ignored).string();
  }
  constexpr int readable_by_all = 0666;  // less what the user's umask forbids
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    temporary_ = fmt::format("{}.{}.tmp", target_, ::getpid());
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, readable_by_all);
  }
  if (file_ < 0) {
    temporary_.clear();
    fail(errno);
  }
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::exchange(other.file_, -1)) {}

OutputFile::~OutputFile() { close_and_remove(); }

void OutputFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  if (::close(std::exchange(file_, -1)) != 0) fail(errno);
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void OutputFile::fail(int error_number) const {
  bad_input("output", "cannot write {}: {}", path_.empty() ? "''" : path_, std::strerror(error_number));
}

void OutputFile::close_and_remove() noexcept {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  file_ = -1;
}

void write_file_atomically(const std::string& path, std::string_view contents) {
  OutputFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace hcclsim
