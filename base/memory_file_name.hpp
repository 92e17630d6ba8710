#pragma once

#include <string>
#include <string_view>

/// What people are told of a MemoryFile (memory_file.hpp), whose path says nothing to them.
namespace hcclsim {

/// Whether a path is that of a MemoryFile.
[[nodiscard]] bool is_memory_file(std::string_view path);

/// What the MemoryFile of a path was called, "a pipe" if it was not.
[[nodiscard]] std::string memory_file_title(const std::string& path);

/// A text with "-" for every such path: what a command calls a pipe that it has read.
[[nodiscard]] std::string without_memory_files(std::string_view text);

}  // namespace hcclsim
