#pragma once

#include <functional>
#include <string>
#include <vector>

#include "study/compare/sweep/points.hpp"
#include "study/compare/sweep/store.hpp"

/// Generations of points: an edited platform or input file, and another version of hcclsim, give the same inputs a new
/// result beside the old one. A result is stale if the command of its inputs would not give it today.
namespace hcclsim::study {

/// The sweep of a command, for what its points depend on beside their inputs; its grid does not matter.
using SweepOfCommand = std::function<SweepGrid(const std::string& command)>;

/// Fills in StoredPoint::stale and today, by the files as they are now.
void mark_stale(std::vector<StoredPoint>& points, const SweepOfCommand& sweep_of);

/// Of points of the same inputs the newest result: the one that is not stale, else the one that was added last; points
/// without a result only where no generation has one. A stale point is left out whose command would give another one
/// that is there, such as that of an equal file elsewhere. In the order in which the points were added. Needs
/// mark_stale().
[[nodiscard]] std::vector<StoredPoint> newest(std::vector<StoredPoint> points);

/// Stale points whose commands would give results that are not there.
[[nodiscard]] bool can_be_refreshed(const std::vector<StoredPoint>& points);

/// "3 of 8 points are stale (platform edited: 2, input file changed: 1)"; empty if none is.
[[nodiscard]] std::string stale_text(const std::vector<StoredPoint>& points);

}  // namespace hcclsim::study
