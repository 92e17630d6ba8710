#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/workload.hpp"
#include "models/graph.hpp"
#include "study/profile/kernel_profile.hpp"
#include "study/profile/phases.hpp"

/// Puts measured kernels in the place of the cost model's, kernel by kernel. A forward or backward kernel takes its
/// measured duration and the time that its stream was idle before it, an update its duration (the time before it is
/// that of the allreduce); of several iterations the mean. Kernels that share a measured time get parts of it in
/// proportion to the cost model. What has no counterpart is named: a measured kernel of no kernel of the model is not
/// simulated, a kernel of the model that was not measured keeps the model's cost.
namespace hcclsim::study {

struct KernelMatch {
  /// A measured kernel that stands for none of the model's.
  struct Unmatched {
    std::string name;
    std::string type;
    Seconds time = 0;  ///< per iteration
  };
  std::uint32_t iterations = 0;
  std::size_t replaced = 0;                ///< kernels of the model that take a measured time
  Seconds replaced_time = 0;               ///< of all of them, in a step
  std::vector<std::string> modelled{};     ///< kernels that keep the cost model's time, in the order of the step
  Seconds modelled_time = 0;               ///< of all of them
  std::vector<Unmatched> not_simulated{};  ///< the longest first
  Seconds not_simulated_time = 0;
  Phases phases{};  ///< as measured
};

/// Replaces the durations in `workload`, which must be that of `graph`. Throws Error(bad_input, "profile") if no kernel
/// matches, with the first names of both sides.
[[nodiscard]] KernelMatch replace_kernels(const KernelProfile& profile, const models::Graph& graph,
                                          device::Workload& workload);

}  // namespace hcclsim::study
