#pragma once

#include <string>

#include "device/soc.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/config.hpp"
#include "hccl/collective/launch_mode.hpp"
#include "hccl/comm/communicator.hpp"

/// The choice between servers, HCCL's level 1: HCCL_ALGO, or what HCCL takes by itself (selection.hpp).
namespace hcclsim::hccl {

struct Level1 {
  /// Of hierarchical between servers; or pipeline, ahc or pairwise, which span both levels.
  Algorithm algorithm = Algorithm::ring;
  std::string rule{};
};

/// HCCL_ALGO says AHC, which is for servers that differ in their numbers of ranks, too.
[[nodiscard]] bool asks_for_ahc(Collective collective, const HcclConfig& config);

/// Of an operation over servers with the same number of ranks each, or where HCCL_ALGO says AHC. `in_levels`: the user
/// wants the levels one after the other, so HCCL's own choice does not overlap them.
[[nodiscard]] Level1 choose_level1(const Operation& operation, LaunchMode launch, const HcclConfig& config,
                                   const Topology& topology, const device::Soc& soc, bool in_levels);

}  // namespace hcclsim::hccl
