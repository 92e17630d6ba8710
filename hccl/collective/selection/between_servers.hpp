#pragma once

#include "device/soc.hpp"
#include "hccl/collective/selection/algo_level.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/settings/launch_mode.hpp"

/// The choice between servers (of a super-pod), HCCL's level 1: HCCL_ALGO, or what HCCL takes by itself
/// (selection.hpp).
namespace hcclsim::hccl {

/// Of an operation over servers with the same number of ranks each, or where HCCL_ALGO says AHC. `in_levels`: the user
/// wants the levels one after the other, so HCCL's own choice does not overlap them.
[[nodiscard]] LevelChoice choose_between_servers(const Operation& operation, LaunchMode launch,
                                                 const HcclConfig& config, const Topology& topology,
                                                 const device::Soc& soc, bool in_levels);

}  // namespace hcclsim::hccl
