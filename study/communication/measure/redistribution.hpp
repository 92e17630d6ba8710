#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/layout/redistribution.hpp"
#include "hccl/settings/launch_mode.hpp"
#include "sim/network_kind.hpp"
#include "study/platform/platform.hpp"

/// A tensor that devices bring from one layout into another one, step by step, with the time of every collective.
namespace hcclsim::study {

struct RedistributionSpec {
  PlatformSpec platform{};
  hccl::TensorLayout from{};  ///< device i is rank i
  hccl::TensorLayout to{};
  hccl::RedistributionRules rules{};
  DataType type = DataType::fp32;
  hccl::LaunchMode launch = hccl::LaunchMode::graph;
  sim::NetworkKind network = sim::NetworkKind::fluid;
};

/// All groups of a collective at the same time, nothing else beside them.
struct CollectiveOfStep {
  std::string algorithm{};
  Seconds time = 0;  ///< one call of the slowest group, from its issue until all its ranks have waited for its end
};

struct RedistributionTimes {
  PlatformFacts on;
  std::vector<hccl::RedistributionStep> steps;
  /// Of each step; none of what devices do by themselves, which is not timed.
  std::vector<std::optional<CollectiveOfStep>> collectives;
  Seconds total = 0;  ///< of the collectives, one behind the other
};

/// Simulates in a child. Throws Error(bad_input, "runtime-error") for layouts between which there is no way, what
/// redistribute() throws, and what a platform and its collectives may throw.
[[nodiscard]] RedistributionTimes time_redistribution(const RedistributionSpec& spec);

}  // namespace hcclsim::study
