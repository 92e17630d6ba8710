#include "base/files/output_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/files/temporary_name.hpp"

namespace hcclsim {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view end_of_part = "part";

int locked_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0 && ::flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  if (folder >= 0) ::close(folder);
  return -1;
}

}  // namespace

OutputFolder::OutputFolder(const std::string& path, Existing existing) : path_(path), target_(path) {
  while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
  if (target_.empty()) bad_input("output", "the path of an output folder is empty");
  std::error_code error;
  const fs::file_status status = fs::status(target_, error);
  if (fs::exists(status)) {
    if (!fs::is_directory(status)) fail(ENOTDIR);
    fills_ = !fs::is_empty(target_, error);
    if (error) fail(error.value());
    if (fills_ && existing == Existing::is_refused) {
      bad_input("output", "cannot write {}: the folder is there and not empty; give a new one", path_);
    }
    target_ = fs::canonical(target_, error).string();  // where a link leads to
    if (error) fail(error.value());
  }
  const fs::path parent = fs::path(target_).parent_path();
  above_ = fills_                            ? target_
           : existing == Existing::is_filled ? existing_folder(target_).string()
           : parent.empty()                  ? "."
                                             : parent.string();
  if (::access(above_.c_str(), W_OK | X_OK) != 0) fail(errno);
}

void OutputFolder::make_temporary() {
  remove_leftovers();
  std::error_code error;
  std::string temporary = above_ + '/' + temporary_name(fs::path(target_).filename().string(), end_of_part);
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

OutputFile OutputFolder::file(const std::string& relative) const {
  OutputFile file(place_of(relative));
  file.show_as(path_ + '/' + relative);
  return file;
}

void OutputFolder::commit() {
  if (fills_) {
    move_files();
    return;  // the temporary folder, which is empty now, goes with this object
  }
  std::error_code error;
  fs::create_directories(fs::absolute(target_).parent_path(), error);
  if (error) fail(error.value());
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

/// Each file to its place in the folder that is there.
void OutputFolder::move_files() const {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(temporary_)) {
    const fs::path place = fs::path(target_) / entry.path().lexically_relative(temporary_);
    std::error_code error;
    if (entry.is_directory()) {
      fs::create_directories(place, error);
    } else {
      fs::rename(entry.path(), place, error);
    }
    if (error) fail(error.value());
  }
}

void OutputFolder::fail(int error_number) const {
  bad_input("output", "cannot write {}: {}", path_, std::strerror(error_number));
}

void OutputFolder::remove_leftovers() const {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(above_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!is_temporary_name(name, fs::path(target_).filename().string(), end_of_part)) continue;
    const int folder = locked_folder(entry.path().string());
    if (folder < 0) continue;  // somebody writes it
    fs::remove_all(entry.path(), ignored);
    ::close(folder);
  }
}

}  // namespace hcclsim
