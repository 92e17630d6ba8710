#pragma once

#include <string>

#include "study/communication/measure/collective.hpp"

/// What `hcclsim collective` prints, from plain data: the table of hccl_test, with more columns if asked for, JSON, CSV
/// and a picture.
namespace hcclsim::cli {

using study::Measurement;
using study::MeasurementRow;
using study::MeasureSpec;

/// `op`: the collective as the user calls it.
[[nodiscard]] std::string collective_text(const Measurement& measurement, const MeasureSpec& spec, bool extended);
[[nodiscard]] std::string collective_json(const Measurement& measurement, const MeasureSpec& spec,
                                          const std::string& op);
[[nodiscard]] std::string collective_csv(const Measurement& measurement, const MeasureSpec& spec,
                                         const std::string& op);
/// Time and bandwidth over the size, as SVG.
[[nodiscard]] std::string collective_plot(const Measurement& measurement, const std::string& op);

/// "success", "failed"; "NULL" without a check.
[[nodiscard]] std::string check_word(const MeasurementRow& row);

}  // namespace hcclsim::cli
