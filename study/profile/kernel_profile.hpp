#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// The kernels of some iterations as a profiler saw them: msprof's `op_summary_*.csv` (columns Op Name, OP Type, Task
/// Type, Task Start Time(us), Task Duration(us)) or `kernel_details.csv` of the frameworks' profilers (Name, Type,
/// Accelerator Core, Start Time(us), Duration(us)). Step Id and Stream ID are used where they are there.
namespace hcclsim::study {

struct MeasuredKernel {
  std::string name;
  std::string type;            ///< of the operator, such as Conv2D; may be empty
  bool communication = false;  ///< a collective, not a kernel
  std::uint32_t iteration = 0;
  Seconds start = 0;     ///< since the first date of the file
  Seconds duration = 0;  ///< on the accelerator, dispatch included
  Seconds gap = 0;       ///< time that its stream was idle before it in this iteration
};

struct KernelProfile {
  std::string file;
  bool kernel_details = false;  ///< else op_summary
  std::uint32_t iterations = 0;
  std::vector<MeasuredKernel> kernels;  ///< by start; at least one
};

/// Iterations are those of the column Step Id; without it one begins with each recurrence of the name that starts
/// first. Throws Error(bad_input) of kind "profile" with file and line: a column missing or given twice, rows without
/// a name, times that are no numbers or negative, no rows, more than ten million rows.
[[nodiscard]] KernelProfile parse_kernel_profile(std::string_view text, const std::string& file);

}  // namespace hcclsim::study
