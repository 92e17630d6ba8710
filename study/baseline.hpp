#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"

/// A run compared with a stored one, its baseline: both as the object that `hcclsim run --format json` prints
/// (docs/formats.md).
///
/// Two runs are compared part by part: the configuration (what was simulated), the step, each trace point, each
/// segment, the gradients, the ranks and, with real numbers, each training step. What the configuration must be the
/// same for is only compared if it is: segments of the same split, gradients of the same model. Sentences, comparisons
/// with other simulations and keys that the baseline does not have, as an older hcclsim wrote it, are not compared; a
/// figure that only the baseline has is a difference.
namespace hcclsim::study {

/// Relative difference of figures that rounding alone makes: sums in another order.
inline constexpr double rounding_tolerance = 1e-12;

struct Difference {
  std::string place;   ///< "segment 2 [108,160] on rank 0"
  std::string figure;  ///< its key, such as "end_s"
  Json before;
  Json after;                        ///< null if the run does not have it
  std::optional<double> relative{};  ///< (after − before) / |before|; none: no numbers, or before is 0
};

/// Figures that are compared as one: a test of a CI system.
struct ComparedPart {
  std::string name;  ///< "segment 2 [108,160]"
  std::uint32_t figures = 0;
  std::vector<Difference> differences{};
};

struct BaselineComparison {
  double tolerance = 0;
  std::vector<ComparedPart> parts;  ///< the configuration first

  [[nodiscard]] std::size_t figures() const;
  [[nodiscard]] std::size_t differences() const;
};

/// Reads the file; throws Error(bad_input, "baseline") if it is not the JSON form of a run, or of another
/// format_version.
[[nodiscard]] Json read_baseline(const std::string& file);

/// Figures agree within `tolerance` · |baseline's|; names, counts and the configuration must be equal.
[[nodiscard]] BaselineComparison compare_runs(const Json& baseline, const Json& run, double tolerance);

}  // namespace hcclsim::study
