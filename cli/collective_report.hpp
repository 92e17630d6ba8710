#pragma once

#include <string>

#include "cli/collective_sweep.hpp"

/// What `hcclsim collective` prints, from plain data: the table of hccl_test, with more columns if asked for, JSON, CSV
/// and a picture.
namespace hcclsim::cli {

[[nodiscard]] std::string collective_text(const Sweep& sweep, bool extended);
[[nodiscard]] std::string collective_json(const Sweep& sweep, const SweepOptions& options, const std::string& op);
[[nodiscard]] std::string collective_csv(const Sweep& sweep, const std::string& op);
/// Time and bandwidth over the size, as SVG.
[[nodiscard]] std::string collective_plot(const Sweep& sweep, const std::string& op);

/// "success", "failed"; "NULL" without a check.
[[nodiscard]] std::string check_word(const SweepRow& row);

}  // namespace hcclsim::cli
