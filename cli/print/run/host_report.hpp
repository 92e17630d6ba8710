#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "cli/print/run/run_report.hpp"

/// What the host of the printed rank did for a step, where a run says anything of it.
namespace hcclsim::cli {

/// A line for each: how the batch came, how kernels were issued, checkpoints.
[[nodiscard]] std::string host_lines(const RunReport& report);
void add_host_json(Json& json, const RunReport& report);

/// The options, where they were given.
void add_host_settings(const study::RunSpec& spec, std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace hcclsim::cli
