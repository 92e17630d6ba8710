#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/options/sweep_grid.hpp"
#include "study/sweep/point.hpp"
#include "study/sweep/store.hpp"

/// `hcclsim sweep run`: computes the points of a grid that the database has not yet.
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

void add_sweep_run_command(Command& sweep);

/// How this machine writes a database: the tasks of a sweep that was submitted read it on others.
[[nodiscard]] study::SweepStore::Access access_to(const std::string& database, bool shared);

/// Prints what the store has of these points: counts, the first errors, the best ones. Throws Error(check_failed) if
/// some have failed or are left.
void report_points(study::SweepStore& store, const std::vector<study::Point>& points, std::uint64_t computed);

/// "batch 64, split-by-size 80,20": what tells a point from the others.
[[nodiscard]] std::string name_of_point(const Json& inputs, const std::vector<std::string>& axes);
/// The axes that differ between points.
[[nodiscard]] std::vector<std::string> axes_of(const std::vector<study::StoredPoint>& points);

}  // namespace hcclsim::cli
