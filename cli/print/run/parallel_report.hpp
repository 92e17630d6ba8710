#pragma once

#include <string>

#include "base/json.hpp"
#include "cli/print/run/run_report.hpp"

/// What `hcclsim run` prints of stages, micro-batches and shared parameters.
namespace hcclsim::cli {

/// The first lines, in place of those that tell the split of data parallelism.
[[nodiscard]] std::string parallel_head(const RunReport& report);
/// The table by stage, what travels, and what is alive at the peak.
[[nodiscard]] std::string parallel_text(const RunReport& report);
/// Of --explain-memory beside segments: the parts of the HBM and what is alive at the peak.
[[nodiscard]] std::string memory_text(const RunReport& report);
/// What is read of the data set, where a dataset strategy was given.
[[nodiscard]] std::string input_line(const RunReport& report);
[[nodiscard]] std::string throughput_line(const study::Throughput& throughput);

/// Members "parallel", "stages" and "traffic" of the JSON form.
void add_parallel_json(Json& json, const RunReport& report);
[[nodiscard]] Json throughput_json(const study::Throughput& throughput);

}  // namespace hcclsim::cli
