#pragma once

#include "device/soc.hpp"
#include "hccl/collective/selection/algo_level.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/settings/launch_mode.hpp"

/// The choice of an algorithm between servers (of one super-pod), HCCL's level 1: what HCCL_ALGO says, or what HCCL
/// chooses by itself (selection.hpp).
namespace hcclsim::hccl {

/// For operations over servers with the same number of ranks each, or if HCCL_ALGO says AHC. `in_levels`: the user
/// wants one level after the other, so HCCL's own choice is limited to algorithms that do not overlap them.
[[nodiscard]] LevelChoice choose_between_servers(const Operation& operation, LaunchMode launch,
                                                 const HcclConfig& config, const Topology& topology,
                                                 const device::Soc& soc, bool in_levels);

}  // namespace hcclsim::hccl
