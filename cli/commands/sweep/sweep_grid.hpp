#pragma once

#include <string>
#include <vector>

#include "study/compare/sweep/points.hpp"

/// The grid of `hcclsim sweep`, from the command line and a TOML file: options of `run` or `collective` whose values
/// may be several.
namespace hcclsim::cli {

/// `command` may be empty if the file of `config` has a section of its name; what `arguments` say counts before the
/// file. Every value is one that its option takes; throws Error(bad_input) otherwise.
[[nodiscard]] study::SweepGrid read_grid(const std::string& command, const std::vector<std::string>& arguments,
                                         const std::string& config);

/// The sweep of a command without axes: what its points depend on beside their inputs. Throws Error(bad_input,
/// "option") for a command that cannot be swept.
[[nodiscard]] study::SweepGrid sweep_of(const std::string& command);

}  // namespace hcclsim::cli
