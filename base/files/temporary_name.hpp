#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Names of what is written beside its target until it is whole: "TARGET.hcclsim-PROCESS.END". No user has files of
/// such names, so that what a killed process left there can be removed.
namespace hcclsim {

/// `end`: "tmp" of a file, "part" of a folder.
[[nodiscard]] std::string temporary_name(std::string_view target, std::string_view end);

/// Returns whether temporary_name() gives this name to some process.
[[nodiscard]] bool is_temporary_name(std::string_view name, std::string_view target, std::string_view end);

/// The folder of a path, or the nearest one above it that exists.
[[nodiscard]] std::filesystem::path existing_folder(const std::filesystem::path& path);

}  // namespace hcclsim
