#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "models/program.hpp"
#include "study/files/profile/kernel_match.hpp"

/// Gives kernels of a program their measured times, and says how many of them were measured.
namespace hcclsim::study {

/// A measured time that kernels of the model share.
struct SharedTime {
  std::vector<models::Kernel*> kernels;
  Seconds time = 0;  ///< with the idle one
  Seconds idle = 0;  ///< the part in which the NPU waits for its host
};

/// Gives kernels their parts of the times, in proportion to the cost model. A kernel has the sum of its parts.
void take_times(std::span<const SharedTime> times);

/// How often a step of so many micro-batches launches a kernel.
[[nodiscard]] std::uint32_t launches_of(const models::Kernel& kernel, std::uint32_t micro_batches);

/// Counts the kernels of the program: those that were `replaced` and the others, in a step of so many micro-batches.
void add_coverage(const models::Program& program, const std::set<const models::Kernel*>& replaced,
                  std::uint32_t micro_batches, KernelMatch& match);

}  // namespace hcclsim::study
