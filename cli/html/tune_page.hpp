#pragma once

#include <string>

#include "cli/html/html_report.hpp"
#include "cli/print/tune_report.hpp"

namespace hcclsim::cli {

/// The page of a gradient split: the best one with its certificate and its timeline, beside what others would choose.
[[nodiscard]] std::string tune_page(const TuneReport& report, const HtmlReport& html);

}  // namespace hcclsim::cli
