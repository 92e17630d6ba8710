#pragma once

#include "device/soc.hpp"
#include "hccl/collective/selection/algo_level.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/settings/launch_mode.hpp"

/// The choice of an algorithm between servers (of one super-pod), HCCL's level 1: what HCCL_ALGO says, or what HCCL
/// chooses by itself (selection.hpp).
///
/// The choice of an algorithm between super-pods, HCCL's level 2: what HCCL_ALGO says, or HCCL's default. The default
/// is the ring for fewer than eight super-pods whose number is not a power of two, otherwise halving-doubling
/// (description of HCCL_ALGO). If HCCL has neither for the operator, it takes NHR.
namespace hcclsim::hccl {

/// For operations over servers with the same number of ranks each, or if HCCL_ALGO says AHC. `in_levels`: the user
/// wants one level after the other, so HCCL's own choice is limited to algorithms that do not overlap them.
[[nodiscard]] LevelChoice choose_between_servers(const Operation& operation, LaunchMode launch,
                                                 const HcclConfig& config, const Topology& topology,
                                                 const device::Soc& soc, bool in_levels);

/// Throws what asked_for throws.
[[nodiscard]] LevelChoice choose_between_super_pods(Collective collective, const HcclConfig& config, Rank super_pods);

}  // namespace hcclsim::hccl
