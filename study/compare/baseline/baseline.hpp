#pragma once

#include <string>

#include "base/json.hpp"
#include "study/compare/baseline/compared_figures.hpp"

/// A run compared with a stored one, its baseline: both as the object that `hcclsim run --format json` prints
/// (docs/formats.md).
///
/// Two runs are compared part by part: the configuration (what was simulated), the step, each trace point, each
/// segment, the gradients, the ranks and, with real numbers, each training step. What the configuration must be the
/// same for is only compared if it is: segments of the same split, gradients of the same model. Sentences, comparisons
/// with other simulations and keys that the baseline does not have, as an older hcclsim wrote it, are not compared; a
/// figure that only the baseline has is a difference.
namespace hcclsim::study {

/// Reads the file; throws Error(bad_input, "baseline") if it is not the JSON form of a run, or of another
/// format_version.
[[nodiscard]] Json read_baseline(const std::string& file);

/// Figures agree within `tolerance` · |baseline's|; names, counts and the configuration must be equal.
[[nodiscard]] BaselineComparison compare_runs(const Json& baseline, const Json& run, double tolerance);

}  // namespace hcclsim::study
