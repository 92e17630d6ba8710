#pragma once

#include "base/units.hpp"
#include "hccl/collective/selection/algo_level.hpp"

/// The choice between super-pods, HCCL's level 2: HCCL_ALGO, or HCCL's default, the ring among fewer than eight
/// super-pods whose number is no power of two, else halving-doubling (description of HCCL_ALGO). Where it has neither
/// for the operator, it takes NHR.
namespace hcclsim::hccl {

/// Throws what asked_for throws.
[[nodiscard]] LevelChoice choose_between_super_pods(Collective collective, const HcclConfig& config, Rank super_pods);

}  // namespace hcclsim::hccl
