#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/soc.hpp"
#include "hccl/collective/selection/selection.hpp"

/// What HCCL_ALGO does not do to a collective that runs: nobody should believe that an algorithm was measured which was
/// not. The variable speaks of seven operators and two levels at once, so that most of a value that is right for a
/// whole program may mean nothing to one collective on one platform.
namespace hcclsim::hccl {

/// Sentences that name the setting of HCCL_ALGO among `settings`, which have passed read_hccl_config: where an
/// algorithm or levels were asked for by other means, where the value does not speak of the operator, where the product
/// does not have the algorithm for it, and where there is no such level. None if HCCL_ALGO is not set, or if all that
/// it says of the operator is obeyed.
[[nodiscard]] std::vector<std::string> algo_notes(std::span<const HcclSetting> settings,
                                                  const CollectiveRequest& request, const Topology& topology,
                                                  device::Generation generation);

}  // namespace hcclsim::hccl
