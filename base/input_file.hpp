#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

/// A file that is read piece by piece from any place, so that one of many gigabytes need not fit into memory. Reading
/// is thread-safe. All errors are Error(bad_input) of the kind given by the reader's owner and name the file.
namespace hcclsim {

class InputFile {
 public:
  /// Opens a file for reading; throws if there is none or it cannot be read. "-" is standard input. A pipe (process
  /// substitution, `… | hcclsim … -`) is read at once, up to 256 MiB; refused are devices, sockets, folders, and a
  /// named pipe that no program opens to write within 5 s.
  InputFile(std::string path, std::string kind);
  InputFile(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  /// As given, or "standard input".
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Bytes of the file when it was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// The whole of it.
  [[nodiscard]] std::string text() const;
  /// Reads into the whole of `to`, from byte `offset` on; throws if the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// The same for as many bytes as there are; returns the part of `to` that was filled.
  [[nodiscard]] std::span<std::byte> read_some(std::uint64_t offset, std::span<std::byte> to) const;

  /// Throws Error(bad_input) "PATH: message".
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input(kind_, "{}: {}", path_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void read_through();
  [[nodiscard]] bool wait_for_writer(bool waited) const;
  /// The result of a call of read; throws if it failed, false: again.
  [[nodiscard]] bool succeeded(ssize_t got) const;

  std::string path_;
  std::string kind_;
  std::uint64_t size_ = 0;
  int file_ = -1;                    // none: the contents are
  std::vector<std::byte> contents_;  // of a pipe
};

/// The whole of a file; throws Error(bad_input) of `kind` if it cannot be read or is larger than a GiB.
[[nodiscard]] std::string read_whole_file(const std::string& path, const std::string& kind);
/// … that people wrote: throws also for what is no text in UTF-8.
[[nodiscard]] std::string read_text_file(const std::string& path, const std::string& kind);

/// Throws Error(bad_input, kind) with file and line for bytes that are no UTF-8.
void require_utf8(std::string_view text, const std::string& file, std::string_view kind);

}  // namespace hcclsim
