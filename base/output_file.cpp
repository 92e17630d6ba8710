#include "base/output_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/files/temporary_name.hpp"

namespace hcclsim {

namespace fs = std::filesystem;

namespace {

constexpr int readable_by_all = 0666;  // less what the user's umask forbids

/// Where a path leads to through symbolic links, the last of which may lead to nothing; empty for links in a circle.
fs::path end_of_links(fs::path path) {
  constexpr int most_links = 40;  // as Linux
  for (int links = 0; links < most_links; ++links) {
    std::error_code no_link;
    const fs::path next = fs::read_symlink(path, no_link);
    if (no_link) return path;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return {};
}

constexpr std::string_view temporary_end = "tmp";

/// A file without a name can be given one through this path.
std::string path_of(int file) { return fmt::format("/proc/self/fd/{}", file); }

}  // namespace

OutputFile::OutputFile(const std::string& path, Folders folders) : path_(path), target_(path) {
  if (path.empty()) bad_input("output", "the path of an output file is empty");
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) fail(EISDIR);
  if (fs::exists(status)) {
    if (::access(path.c_str(), W_OK) != 0) fail(errno);
    target_ = fs::canonical(path, ignored).string();
  } else {
    target_ = end_of_links(path).string();
    if (target_.empty()) fail(ELOOP);
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) fail(errno);
    return;
  }
  const fs::path parent = fs::path(target_).parent_path();
  open_temporary(folders == Folders::are_made ? existing_folder(target_).string()
                 : parent.empty()             ? "."
                                              : parent.string());
}

void OutputFile::open_temporary(const std::string& folder) {
  // The name, for the checks that a file without one escapes: its length, and a link that leads nowhere.
  const std::string name = fs::path(target_).filename().string();
  const std::string beside = folder + '/' + temporary_name(name, temporary_end);
  struct stat unused {};
  if (::lstat(beside.c_str(), &unused) != 0 && errno != ENOENT) fail(errno);
  file_ = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, readable_by_all);
  nameless_ = file_ >= 0 && ::access(path_of(file_).c_str(), F_OK) == 0;
  if (nameless_) {
    lock();
    return;
  }
  if (file_ >= 0) ::close(file_);
  file_ = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, readable_by_all);
  if (file_ < 0) fail(errno);
  temporary_ = beside;
  lock();
}

/// Tells others that the file is being written, until it is closed or this process ends. Not all file systems can.
void OutputFile::lock() const { static_cast<void>(::flock(file_, LOCK_EX | LOCK_NB)); }

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      nameless_(std::exchange(other.nameless_, false)),
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
  if (nameless_ || !temporary_.empty()) make_folders();
  if (nameless_ || !temporary_.empty()) remove_leftovers();
  if (nameless_) give_name();
  const int locked = ::dup(file_);  // until the file has its name
  const bool closed = ::close(std::exchange(file_, -1)) == 0;
  const bool renamed = closed && (temporary_.empty() || std::rename(temporary_.c_str(), target_.c_str()) == 0);
  const int error = errno;
  if (locked >= 0) ::close(locked);
  if (!renamed) fail(error);
  temporary_.clear();
}

/// Removes what killed writers of the same target have left beside it: temporary files that nobody has locked.
void OutputFile::remove_leftovers() const {
  std::error_code ignored;
  const fs::path target(target_);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.path() == temporary_ || !is_temporary_name(name, target.filename().string(), temporary_end)) continue;
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    ::close(file);
  }
}

void OutputFile::make_folders() const {
  std::error_code failure;
  const fs::path parent = fs::path(target_).parent_path();
  if (!parent.empty()) fs::create_directories(parent, failure);
  if (failure) fail(failure.value());
}

/// Links the file beside its target, whose place it can then take in one step.
void OutputFile::give_name() {
  const std::string name = temporary_name(target_, temporary_end);
  if (::linkat(AT_FDCWD, path_of(file_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) fail(errno);
  nameless_ = false;
  temporary_ = name;
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
