#pragma once

#include <string>
#include <vector>

#include "cli/commands/sweep/sweep_grid.hpp"
#include "study/compare/sweep/sweep.hpp"

/// What the commands have in common that compute a grid.
namespace hcclsim::cli {

class Command;

/// What names a grid on the command line: DATABASE COMMAND OPTIONS… and --config.
struct GridArguments {
  std::string database;
  std::string command;
  std::string config;
  Command* parsed = nullptr;  ///< keeps what follows the command

  [[nodiscard]] std::vector<study::Point> points() const;
};

/// Adds them to a command; options of the sweep come before them, options of a point behind.
void add_grid_arguments(Command& command, GridArguments& arguments);

/// Prints what a database has of the points of a grid: counts, the first errors, the best ones. Throws
/// Error(check_failed) if some have failed or are left.
void print_report(const study::SweepReport& report);

}  // namespace hcclsim::cli
