#pragma once

#include <string>
#include <vector>

#include "study/sweep/grid.hpp"
#include "study/sweep/point.hpp"

/// The grid of `hcclsim sweep`, from the command line and a TOML file: options of `run` or `collective` whose values
/// may be several.
namespace hcclsim::cli {

struct SweepGrid {
  std::string command;
  study::Grid grid;
};

/// `command` may be empty if the file of `config` has a section of its name; what `arguments` say counts before the
/// file. Every value is one that its option takes; throws Error(bad_input) otherwise.
[[nodiscard]] SweepGrid read_grid(const std::string& command, const std::vector<std::string>& arguments,
                                  const std::string& config);

/// All points of the grid with their names, none twice. Platform files that a pattern names are found here. Throws
/// Error(bad_input) for files that cannot be read.
[[nodiscard]] std::vector<study::Point> points_of(const SweepGrid& grid);

}  // namespace hcclsim::cli
