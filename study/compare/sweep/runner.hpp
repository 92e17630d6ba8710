#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "study/compare/sweep/loader.hpp"
#include "study/compare/sweep/point.hpp"
#include "study/compare/sweep/store.hpp"

/// Computes the points of a sweep that the store has not yet: up to `jobs` loaders at a time, which compute one point
/// each; this process alone writes to the store. Points that another sweep is computing are waited for, and taken over
/// if it dies.
namespace hcclsim::study {

struct Tally {
  std::uint64_t points = 0;    ///< of the grid
  std::uint64_t before = 0;    ///< finished before
  std::uint64_t computed = 0;  ///< by this process, failed ones included
  [[nodiscard]] std::uint64_t finished() const { return before + computed; }
};

struct RunnerOptions {
  std::uint32_t jobs = 1;
  std::function<bool()> stop;                  ///< whether to begin no further point and end
  std::function<void(const Tally&)> progress;  ///< called often
};

/// Runs until all points are finished, or until stop() says so and what is under way has ended. Points must be in the
/// store, whose errors are thrown.
Tally run_points(SweepStore& store, const std::vector<Point>& points, const LoadGroup& load,
                 const RunnerOptions& options);

}  // namespace hcclsim::study
