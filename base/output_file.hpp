#pragma once

#include <string>
#include <string_view>

/// Files appear whole or not at all: contents go to a file without a name in the target's folder, which takes the
/// target's place when all is written; a process that is killed leaves nothing. (A file system without such files gets
/// a temporary name instead; what a killed process left there is removed when the same target is written again.) A
/// symbolic link stays, and where it leads to is written. If a path cannot be written, opening early, before a long
/// simulation, shows it at once.
namespace hcclsim {

class OutputFile {
 public:
  enum class Folders : bool { must_exist, are_made };

  /// Opens a file for `path`. A path that is not a regular file (/dev/null, a pipe) is written directly. With
  /// Folders::are_made, missing folders on the way are made by commit(). Throws Error(bad_input) of kind "output" if
  /// the path cannot be written.
  explicit OutputFile(const std::string& path, Folders folders = Folders::must_exist);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile& operator=(OutputFile&&) = delete;
  /// Leaves the target as it was unless commit() was called.
  ~OutputFile();

  /// Messages name the file by this text if it is not the path.
  void show_as(const std::string& name) { path_ = name; }
  /// Appends; throws Error(bad_input) of kind "output" (disk full, …).
  void write(std::string_view text);
  /// Makes the contents appear at the path. Nothing can be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail(int error_number) const;
  void open_temporary(const std::string& folder);
  void lock() const;
  void make_folders() const;
  void remove_leftovers() const;
  void give_name();
  void close_and_remove() noexcept;

  std::string path_;       ///< for messages
  std::string target_;     ///< with symbolic links resolved
  std::string temporary_;  ///< name of the file until commit(); empty if it has none or is written directly
  bool nameless_ = false;
  int file_ = -1;
};

/// Writes a file whole or not at all; throws Error(bad_input) of kind "output".
void write_file_atomically(const std::string& path, std::string_view contents);

}  // namespace hcclsim
