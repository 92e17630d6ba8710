#pragma once

#include <string>

#include "study/compare/tune/result.hpp"

/// What `hcclsim tune` prints, as text and JSON (docs/formats.md). Nothing here simulates. Dates are seconds since
/// fp_start.
namespace hcclsim::cli {

/// A result, and how it is wanted.
struct TuneReport : study::TuneResult {
  bool explain = false;
};

[[nodiscard]] std::string tune_text(const TuneReport& report);
/// One object with format_version 2.
[[nodiscard]] std::string tune_json(const TuneReport& report);

}  // namespace hcclsim::cli
