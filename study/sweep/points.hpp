#pragma once

#include <set>
#include <string>
#include <vector>

#include "study/sweep/grid.hpp"
#include "study/sweep/point.hpp"

/// From a grid to its points: each with what its result depends on, and its name.
namespace hcclsim::study {

struct SweepGrid {
  std::string command;  ///< "run" or "collective"
  Grid grid{};
  std::string platform{};         ///< where no axis says it
  std::set<std::string> files{};  ///< axes whose values name files, beside the platform's
  std::string version{};          ///< of hcclsim
};

/// All points of the grid with their names, none twice; variables of HCCL that are set are inputs like others. Throws
/// Error(bad_input) for platforms that are not found and files that cannot be read.
[[nodiscard]] std::vector<Point> points_of(const SweepGrid& sweep);

}  // namespace hcclsim::study
