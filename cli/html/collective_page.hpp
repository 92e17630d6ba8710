#pragma once

#include <string>

#include "cli/collective_measurement.hpp"
#include "cli/html/html_report.hpp"

namespace hcclsim::cli {

/// The page of a collective: time and bandwidth over the size beside HCCL's formula and the lower bound.
[[nodiscard]] std::string collective_page(const Measurement& measurement, const MeasurementOptions& options,
                                          const std::string& op, const HtmlReport& html);

}  // namespace hcclsim::cli
