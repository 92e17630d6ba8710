#pragma once

#include <string>
#include <string_view>

/// A file that a command writes must be none that it reads, and no other that it writes: `--junit` with the file of
/// `--baseline` would destroy what the run is compared with.
namespace hcclsim::cli {

class Command;

/// What is wrong with the files of the command as its options have them by now; empty if nothing is. A checkpoint may
/// be saved where it was loaded from; devices, pipes and standard output may be named as often as one likes. A command
/// that must write no files (Command::refuse_written_files) may name none.
[[nodiscard]] std::string overwriting(const Command& command);

/// What is said of a file of this option where the command must write none.
[[nodiscard]] std::string refused_file(std::string_view option);

/// Throws Error(bad_input, "option") with the message of `overwriting`, if there is one.
void refuse_overwriting(const Command& command);

}  // namespace hcclsim::cli
