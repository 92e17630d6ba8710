#pragma once

#include <vector>

#include "base/units.hpp"
#include "device/program.hpp"
#include "models/graph.hpp"
#include "study/platform/platform.hpp"

namespace hcclsim::study {

struct KernelTimes {
  bool fused_attention = false;  ///< how the graph was lowered
  std::vector<Seconds> times;
};

/// The time of every kernel of a step on one of the platform's NPUs, by the cost model: those of make_program
/// (device/program.hpp), in their order. Throws Error(bad_input).
[[nodiscard]] KernelTimes kernel_times(const PlatformSpec& platform, const models::Graph& graph,
                                       const device::ProgramOptions& options);

}  // namespace hcclsim::study
