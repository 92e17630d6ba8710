#pragma once

#include <string>

#include "study/calibrate/calibrate.hpp"

/// A platform file with what a calibration has changed.
namespace hcclsim::study {

/// The contents of the file `path`, which must be a valid platform, with the bandwidth, read and write speeds of the
/// links of each kind times its factor and their latencies later by the addition, and with the changed costs of issue.
/// Ranges (low, high) are widened to hold the new bandwidth. Everything that is changed, and the clusters whose links
/// SimGrid makes, get a comment with `source` in front; `link.KIND.source` becomes "calibrated: SOURCE".
[[nodiscard]] std::string rewritten_platform(const std::string& path, const PlatformChange& change,
                                             const std::string& source);

}  // namespace hcclsim::study
