#pragma once

#include <string>
#include <string_view>

/// Files appear whole or not at all: contents go to a temporary file beside the target, which replaces it when all is
/// written. Opening early, before a long simulation, tells at once that a path cannot be written.
namespace hcclsim {

class OutputFile {
 public:
  /// Opens a temporary file in the folder of `path`. A path that is not a regular file (/dev/null, a pipe) is written
  /// directly. Throws Error(bad_input) of kind "output" if the path cannot be written.
  explicit OutputFile(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile& operator=(OutputFile&&) = delete;
  /// Removes the temporary file, and leaves the target as it was, unless commit() was called.
  ~OutputFile();

  /// Appends; throws Error(bad_input) of kind "output" (disk full, …).
  void write(std::string_view text);
  /// Makes the contents appear at the path. Nothing can be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail(int error_number) const;
  void close_and_remove() noexcept;

  std::string path_;       ///< as given, for messages
  std::string target_;     ///< with symbolic links resolved
  std::string temporary_;  ///< empty if the target is written directly
  int file_ = -1;
};

/// Writes a file whole or not at all; throws Error(bad_input) of kind "output".
void write_file_atomically(const std::string& path, std::string_view contents);

}  // namespace hcclsim
