#pragma once

#include <string>

#include "study/platform/platform_summary.hpp"

/// What `hcclsim platform show` prints. Speeds are GB/s in text, bytes per second in JSON (docs/formats.md).
namespace hcclsim::cli {

[[nodiscard]] std::string platform_text(const study::PlatformSummary& platform);
[[nodiscard]] std::string platform_json(const study::PlatformSummary& platform);

}  // namespace hcclsim::cli
