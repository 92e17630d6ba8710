#include "base/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hcclsim {

// O_NONBLOCK: a pipe without a writer is refused, not waited for.
InputFile::InputFile(std::string path, std::string kind)
    : path_(std::move(path)), kind_(std::move(kind)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_ < 0) bad_input(kind_, "cannot read {}: {}", path_.empty() ? "''" : path_, std::strerror(errno));
  struct stat status {};
  const bool regular = ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(std::exchange(file_, -1));
    bad_input(kind_, "cannot read {}: {}", path_, S_ISDIR(status.st_mode) ? "it is a folder" : "not a regular file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      kind_(std::move(other.kind_)),
      size_(other.size_),
      file_(std::exchange(other.file_, -1)) {}

InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

std::span<std::byte> InputFile::read_some(std::uint64_t offset, std::span<std::byte> to) const {
  std::size_t filled = 0;
  while (filled < to.size()) {
    const ssize_t got = ::pread(file_, to.data() + filled, to.size() - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) bad_input(kind_, "cannot read {}: {}", path_, std::strerror(errno));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return to.first(filled);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  const std::size_t got = read_some(offset, to).size();
  if (got < to.size()) fail("ends at byte {}, {} bytes too early", offset + got, to.size() - got);
}

std::string read_text_file(const std::string& path, const std::string& kind) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30U;
  const InputFile file(path, kind);
  if (file.size() > most) file.fail("has {} bytes; up to {} are read", file.size(), most);
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace hcclsim
