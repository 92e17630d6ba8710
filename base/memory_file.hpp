#pragma once

#include <string>

namespace hcclsim {

/// A text that programs read from a path: a file in memory that lives as long as the object.
class MemoryFile {
 public:
  /// `title`: what memory_file_title() says of its path. Throws Error(bad_input, "resources") if the system has no
  /// memory for it.
  explicit MemoryFile(const std::string& text, const std::string& title = "a pipe");
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();

  /// A path that this process and those forked from it can read.
  [[nodiscard]] std::string path() const;
  /// The same; the file then lives as long as the process.
  [[nodiscard]] std::string keep() &&;
  /// … and on in the programs that this process becomes or starts.
  [[nodiscard]] std::string keep_for_programs() &&;

 private:
  int file_;
};

}  // namespace hcclsim
