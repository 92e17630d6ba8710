#pragma once

#include <functional>
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

/// All points of the grid with their names, none twice; variables of HCCL that are set are inputs like others.
/// `find_platform`: the path of a platform's file by its name. Throws Error(bad_input) for files that cannot be read,
/// and what it throws.
[[nodiscard]] std::vector<Point> points_of(const SweepGrid& sweep,
                                           const std::function<std::string(const std::string& name)>& find_platform);

}  // namespace hcclsim::study
