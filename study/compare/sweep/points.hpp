#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "study/compare/sweep/grid.hpp"
#include "study/compare/sweep/point.hpp"

/// From a grid to its points: each with what its result depends on, and its name.
namespace hcclsim::study {

struct SweepGrid {
  std::string command;  ///< "run", "collective" or "job"
  Grid grid{};
  std::string platform{};         ///< where no axis says it
  std::set<std::string> files{};  ///< axes whose values name files, beside the platform's
  std::string version{};          ///< of hcclsim
};

/// Finds what the results of points depend on, reading each file once.
class PointNamer {
 public:
  /// Of points of the sweep's command; its grid does not matter.
  explicit PointNamer(SweepGrid sweep) : sweep_(std::move(sweep)) {}

  /// The point of these inputs, with its files as they are now, and its name. Throws Error(bad_input) for platforms
  /// that are not found and files that cannot be read.
  [[nodiscard]] Point named(Json inputs);
  /// The name that the same point has if another version of hcclsim computes it.
  [[nodiscard]] static std::string id_by_version(Point point, const std::string& version);

 private:
  SweepGrid sweep_;
  std::map<std::string, std::string> hashes_{};     ///< of files
  std::map<std::string, std::string> platforms_{};  ///< as given -> path
};

/// All points of the grid with their names, none twice; variables of HCCL that are set are inputs like others. Throws
/// Error(bad_input) for platforms that are not found and files that cannot be read.
[[nodiscard]] std::vector<Point> points_of(const SweepGrid& sweep);

}  // namespace hcclsim::study
