#include "base/input_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace hcclsim {

namespace {

constexpr const char* standard_input = "standard input";

/// What of a file there is no reading of; empty: it can be read.
std::string unreadable(const struct stat& status, int file) {
  if (S_ISDIR(status.st_mode)) return "it is a folder";
  if (S_ISSOCK(status.st_mode)) return "it is a socket";
  if (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) || ::isatty(file) == 1) return "";
  return "it is a device";
}

}  // namespace

// O_NONBLOCK: devices are refused, not waited for.
InputFile::InputFile(std::string path, std::string kind)
    : path_(std::move(path)),
      kind_(std::move(kind)),
      file_(path_ == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                         : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (path_ == "-") path_ = standard_input;
  if (file_ < 0) bad_input(kind_, "cannot read {}: {}", path_.empty() ? "''" : path_, std::strerror(errno));
  struct stat status {};
  const bool known = ::fstat(file_, &status) == 0;
  std::string problem = known ? unreadable(status, file_) : std::strerror(errno);
  if (!problem.empty()) {
    ::close(std::exchange(file_, -1));
    bad_input(kind_, "cannot read {}: {}", path_, problem);
  }
  if (S_ISREG(status.st_mode) && status.st_size > 0) {
    size_ = static_cast<std::uint64_t>(status.st_size);
  } else {
    read_through();  // files of /proc have no size either
  }
}

void InputFile::read_through() {
  constexpr std::size_t most = std::size_t{256} << 20U;
  constexpr std::size_t piece = std::size_t{64} << 10U;
  bool waited = false;
  while (true) {
    const std::size_t before = contents_.size();
    if (before > most) fail("more than {} MiB come out of it; give a file", most >> 20U);
    contents_.resize(before + piece);
    const ssize_t got = ::read(file_, contents_.data() + before, piece);
    contents_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) {
      if (!contents_.empty() || !wait_for_writer(waited)) break;
      waited = true;
    } else if (got < 0 && errno == EAGAIN) {  // its writer is at work
      pollfd opened{.fd = file_, .events = POLLIN, .revents = 0};
      static_cast<void>(succeeded(::poll(&opened, 1, -1)));
    } else {
      static_cast<void>(succeeded(got));
    }
  }
  ::close(std::exchange(file_, -1));
  size_ = contents_.size();
}

/// A named pipe ends at once as long as nobody has opened it to write: waits for a writer, but not for ever. False for
/// what has really ended.
bool InputFile::wait_for_writer(bool waited) const {
  constexpr int patience_ms = 5000;
  struct stat status {};
  if (::fstat(file_, &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
  pollfd opened{.fd = file_, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&opened, 1, waited ? 0 : patience_ms);
  if (succeeded(ready) && ready == 0 && waited) {
    bad_input(kind_, "cannot read {}: no program has opened this pipe to write for {} s", path_, patience_ms / 1000);
  }
  const bool has_gone = (opened.revents & POLLHUP) != 0;  // a writer that was there
  return !has_gone || (opened.revents & POLLIN) != 0;
}

bool InputFile::succeeded(ssize_t got) const {
  if (got >= 0) return true;
  if (errno == EINTR) return false;
  bad_input(kind_, "cannot read {}: {}", path_, std::strerror(errno));
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      kind_(std::move(other.kind_)),
      size_(other.size_),
      file_(std::exchange(other.file_, -1)),
      contents_(std::move(other.contents_)) {}

InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

std::span<std::byte> InputFile::read_some(std::uint64_t offset, std::span<std::byte> to) const {
  if (file_ < 0) {
    const std::size_t begin = std::min<std::uint64_t>(offset, contents_.size());
    const std::size_t count = std::min(to.size(), contents_.size() - begin);
    std::copy_n(contents_.begin() + static_cast<std::ptrdiff_t>(begin), count, to.begin());
    return to.first(count);
  }
  std::size_t filled = 0;
  while (filled < to.size()) {
    const ssize_t got = ::pread(file_, to.data() + filled, to.size() - filled, static_cast<off_t>(offset + filled));
    if (!succeeded(got)) continue;
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return to.first(filled);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  const std::size_t got = read_some(offset, to).size();
  if (got == to.size()) return;
  // Nothing may have been there: the file ends before.
  struct stat now {};
  const bool shrank = got == 0 && file_ >= 0 && ::fstat(file_, &now) == 0;
  const std::uint64_t end = shrank ? static_cast<std::uint64_t>(now.st_size) : std::min(size_, offset + got);
  fail("ends at byte {}, {} bytes too early", end, offset + to.size() - end);
}

std::string InputFile::text() const {
  std::string text(size_, '\0');
  read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string read_whole_file(const std::string& path, const std::string& kind) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30U;
  const InputFile file(path, kind);
  if (file.size() > most) file.fail("has {} bytes; up to {} are read", file.size(), most);
  return file.text();
}

std::string read_text_file(const std::string& path, const std::string& kind) {
  std::string text = read_whole_file(path, kind);
  require_utf8(text, path, kind);
  return text;
}

void require_utf8(std::string_view text, const std::string& file, std::string_view kind) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  for (const char* at = text.data(); (at = std::find_if_not(at, text.end(), is_ascii)) != text.end();) {
    const std::string_view rest(at, static_cast<std::size_t>(text.end() - at));
    const std::size_t bytes = character_bytes(rest);
    if (bytes == 0) {
      bad_input(kind, "{}:{}: {} is no character in UTF-8; save the file in this encoding", file,
                1 + std::count(text.data(), at, '\n'), printable(rest.substr(0, 1)));
    }
    at += bytes;
  }
}

}  // namespace hcclsim
