#pragma once

#include "base/units.hpp"
#include "hccl/collective/selection/algo_level.hpp"

/// The choice of an algorithm between super-pods, HCCL's level 2: what HCCL_ALGO says, or HCCL's default. The default
/// is the ring for fewer than eight super-pods whose number is not a power of two, otherwise halving-doubling
/// (description of HCCL_ALGO). If HCCL has neither for the operator, it takes NHR.
namespace hcclsim::hccl {

/// Throws what asked_for throws.
[[nodiscard]] LevelChoice choose_between_super_pods(Collective collective, const HcclConfig& config, Rank super_pods);

}  // namespace hcclsim::hccl
