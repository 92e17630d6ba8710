#pragma once

#include <string>
#include <vector>

/// Where platform files are found. The shipped ones lie in the folder that the environment variable HCCLSIM_PLATFORMS
/// names, else in the source tree the command was built from, else beside the installed command
/// (<prefix>/share/hcclsim/platforms).
namespace hcclsim::study {

/// The folder of the shipped files; throws Error(bad_input, "platform") if there is none.
[[nodiscard]] std::string platform_folder();

/// Names of the shipped files without ".xml", sorted.
[[nodiscard]] std::vector<std::string> shipped_platforms();

/// The file that `platform` means: the shipped one of that name, which a file or folder of that name in the working
/// directory does not hide; of "910B2:16" as many servers as `platform generate --soc 910B2 --servers 16` writes, in
/// memory; else the path itself; with ".xml" the file before the shipped one. A pipe, or "-" for
/// standard input, is read once and kept in memory. Throws Error(bad_input, "platform") that lists the shipped files
/// and names the nearest, and for folders, devices and sockets.
[[nodiscard]] std::string find_platform(const std::string& platform);

/// What to call a file that find_platform() found: its name without folders, "a pipe" if it came through one.
[[nodiscard]] std::string platform_name(const std::string& file);

/// Files that a shell's pattern names: paths, else shipped platforms; a name without a pattern as it is. Throws
/// Error(bad_input, "platform") if there is none.
[[nodiscard]] std::vector<std::string> platforms_like(const std::string& pattern);

}  // namespace hcclsim::study
