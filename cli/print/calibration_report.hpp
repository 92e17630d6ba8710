#pragma once

#include <string>

#include "study/communication/calibrate/fit_platform.hpp"

/// What `hcclsim calibrate` prints, as text and JSON (docs/formats.md).
namespace hcclsim::cli {

/// `output`: the file that is written.
[[nodiscard]] std::string calibration_text(const study::FittedPlatform& fitted, const std::string& output);
/// One object with format_version 1.
[[nodiscard]] std::string calibration_json(const study::FittedPlatform& fitted, const std::string& output);

}  // namespace hcclsim::cli
