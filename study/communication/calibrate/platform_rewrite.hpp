#pragma once

#include <string>
#include <vector>

#include "study/communication/calibrate/calibrate.hpp"

/// A platform file with what a calibration has changed.
namespace hcclsim::study {

/// The contents of the file `path`, which must be a valid platform, with what was fitted: bandwidth, read and write
/// speeds of the links of a kind times its factor, their latencies later by the addition, and the costs of issue. The
/// range (low, high) of a fitted bandwidth becomes that of two standard errors to either side. Everything that is
/// changed, and the clusters whose links SimGrid makes, get a comment in front with the sources of the parameter, in
/// the place of that of an earlier calibration; of a fitted bandwidth `link.KIND.source` becomes "calibrated: SOURCES".
[[nodiscard]] std::string rewritten_platform(const std::string& path,
                                             const std::vector<CalibratedParameter>& parameters);

}  // namespace hcclsim::study
