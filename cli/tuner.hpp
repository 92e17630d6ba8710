#pragma once

#include <string>

#include "cli/options/tune_options.hpp"
#include "cli/print/tune_report.hpp"

namespace hcclsim::cli {

/// Simulates the step and its allreduces, finds the best split, and simulates it and what it is compared with. To be
/// called in a child, since it loads the platform. Throws Error(bad_input) for what is wrong with options and files.
[[nodiscard]] TuneReport tune(const TuneOptions& options, const std::string& platform);

}  // namespace hcclsim::cli
