#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// The kernels of some iterations as a profiler saw them: msprof's `op_summary_*.csv` (columns Op Name, OP Type, Task
/// Type, Task Start Time(us), Task Duration(us)) or `kernel_details.csv` of the frameworks' profilers (Name, Type,
/// Accelerator Core, Start Time(us), Duration(us)); either may have the other's names for all but the first. Types and
/// cores may be missing, as at level 0. Step Id, Stream ID, Device_id, and of matrix products Input Shapes and Output
/// Shapes are used where they are there. The order of the rows says nothing unless there are no dates.
namespace hcclsim::study {

struct MeasuredKernel {
  std::string name;
  std::string type;            ///< of the operator, such as Conv2D, by its name if the file does not say; may be empty
  std::string step;            ///< Step Id; empty if the file does not say
  std::string stream;          ///< likewise
  bool communication = false;  ///< a collective, not a kernel
  bool ai_cpu = false;         ///< runs on the CPU of the NPU, as the queue of input data does
  std::uint32_t iteration = 0;
  Seconds start = 0;     ///< since the earliest date of the file
  Seconds duration = 0;  ///< on the accelerator, dispatch included
  // Of a matrix product whose shapes the file tells; else 0.
  std::uint64_t columns = 0;  ///< of its result
  std::uint64_t inner = 0;    ///< over which it sums
};

struct KernelProfile {
  std::string file;
  bool kernel_details = false;  ///< else op_summary
  std::string device;           ///< the only one that is kept; empty if the file does not say
  bool dated = true;            ///< has start times; else the kernels run one right behind the other as in the file
  std::int64_t zero_us = 0;     ///< the file's earliest date
  std::uint32_t iterations = 0;
  std::string iterations_by;            ///< how they were told apart: "Step Id", …
  std::vector<MeasuredKernel> kernels;  ///< by start; at least one
  std::vector<std::string> notes{};     ///< what was left out
  std::string repeated{};               ///< says that the first step is several, if it should have one micro-batch
};

/// Kernels of the first device, the one with the lowest number; their iterations as number_iterations tells them.
/// Kernels of a compression hook are left out: they are simulated beside what is measured. Throws Error(bad_input) of
/// kind "profile" with file and line: a column missing or given twice, rows without a name, times that are no numbers
/// or negative, no rows, more than ten million rows; most kernels begin before others on their stream have ended.
[[nodiscard]] KernelProfile parse_kernel_profile(std::string_view text, const std::string& file);

}  // namespace hcclsim::study
