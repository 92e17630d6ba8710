#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "study/files/profile/phases.hpp"

/// `step_trace_time.csv` of the frameworks' profilers (PyTorch, MindSpore) and `cluster_step_trace_time.csv` of many
/// ranks: how long the NPU computed, communicated and did neither in each step. Needed are the columns Step, Computing,
/// Communication(Not Overlapped), Overlapped, Communication and Free, in microseconds; Device_id, or Type and Index,
/// say whose row it is. There are no dates of forward and backward pass.
namespace hcclsim::study {

struct StepTraceTime {
  std::string file;
  std::string rank;                  ///< the device or rank that is kept; empty if the file does not say
  std::uint32_t steps = 0;           ///< at least one
  Phases phases{};                   ///< means over the steps of this rank
  std::vector<std::string> notes{};  ///< what was left out
};

/// Keeps the rows of the rank or device with the lowest number; those of stages sum ranks up and do not count. Throws
/// Error(bad_input) of kind "profile" with file and line: a column missing, times that are no numbers or negative, no
/// Step (a sum over all that was profiled), a step given twice, parts that do not add up to their sum, no rows.
[[nodiscard]] StepTraceTime parse_step_trace_time(std::string_view text, const std::string& file);

}  // namespace hcclsim::study
