#include "base/files/output_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace hcclsim {

namespace fs = std::filesystem;

namespace {

/// "TARGET.NUMBER.part"
constexpr std::string_view end_of_part = ".part";

int locked_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0 && ::flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  if (folder >= 0) ::close(folder);
  return -1;
}

bool is_part_of(std::string_view target, std::string_view name) {
  if (!name.starts_with(target) || !name.ends_with(end_of_part)) return false;
  name.remove_prefix(target.size());
  name.remove_suffix(std::min(name.size(), end_of_part.size()));
  return name.size() > 1 && name.front() == '.' && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace

OutputFolder::OutputFolder(const std::string& path) : path_(path), target_(path) {
  while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
  if (target_.empty()) bad_input("output", "the path of an output folder is empty");
  std::error_code error;
  const fs::file_status status = fs::status(target_, error);
  if (fs::exists(status)) {
    if (!fs::is_directory(status)) fail(ENOTDIR);
    const bool is_empty = fs::is_empty(target_, error);
    if (error) fail(error.value());
    if (!is_empty) bad_input("output", "cannot write {}: the folder is there and not empty; give a new one", path_);
    target_ = fs::canonical(target_, error).string();  // where a link leads to
    if (error) fail(error.value());
  }
  const fs::path above = fs::path(target_).parent_path();
  if (::access(above.empty() ? "." : above.c_str(), W_OK | X_OK) != 0) fail(errno);
}

void OutputFolder::make_temporary() {
  remove_leftovers();
  std::error_code error;
  std::string temporary = fmt::format("{}.{}{}", target_, ::getpid(), end_of_part);
  if (!fs::create_directory(temporary, error)) fail(error ? error.value() : EEXIST);
  temporary_ = std::move(temporary);
  lock_ = locked_folder(temporary_);
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void OutputFolder::make_folder(const std::string& relative) {
  if (temporary_.empty()) make_temporary();
  std::error_code error;
  fs::create_directories(place_of(relative), error);
  if (error) fail(error.value());
}

void OutputFolder::commit() {
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void OutputFolder::fail(int error_number) const {
  bad_input("output", "cannot write {}: {}", path_, std::strerror(error_number));
}

void OutputFolder::remove_leftovers() const {
  std::error_code ignored;
  const fs::path target(target_);
  const fs::path above = target.has_parent_path() ? target.parent_path() : fs::path(".");
  for (const fs::directory_entry& entry : fs::directory_iterator(above, ignored)) {
    if (!is_part_of(target.filename().string(), entry.path().filename().string())) continue;
    const int folder = locked_folder(entry.path().string());
    if (folder < 0) continue;  // somebody writes it
    fs::remove_all(entry.path(), ignored);
    ::close(folder);
  }
}

}  // namespace hcclsim
