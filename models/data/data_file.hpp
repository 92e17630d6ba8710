#pragma once

#include <string>

#include "base/input_file.hpp"

/// Opening the user's files with data; errors are Error(bad_input) of kind "data".
namespace hcclsim::models {

/// Opens a file; refuses an empty one, and one that gzip has compressed.
[[nodiscard]] InputFile open_data_file(const std::string& path);

/// Throws unless `path` is a folder.
void require_folder(const std::string& path);

}  // namespace hcclsim::models
