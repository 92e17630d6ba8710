#pragma once

#include <string>

#include "cli/html/html_report.hpp"
#include "study/measure/collective.hpp"

namespace hcclsim::cli {

/// The page of a collective: time and bandwidth over the size beside HCCL's formula and the lower bound.
[[nodiscard]] std::string collective_page(const study::Measurement& measurement, const study::MeasureSpec& spec,
                                          const std::string& op, const HtmlReport& html);

}  // namespace hcclsim::cli
