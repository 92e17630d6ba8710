#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/soc.hpp"
#include "hccl/collective/selection/selection.hpp"

/// Notes on the parts of HCCL_ALGO that have no effect on a collective, so that nobody believes to have measured an
/// algorithm that did not run. The variable covers seven operators and two levels at once, so most of a value that is
/// right for a whole program may not apply to one collective on one platform.
namespace hcclsim::hccl {

/// Sentences about the setting of HCCL_ALGO among `settings`, which have passed read_hccl_config. There is one if an
/// algorithm or levels were asked for by other means, if the value does not cover the operator, if the product does not
/// have the algorithm for it, or if there is no such level. There is none if HCCL_ALGO is not set, or if everything
/// that it says about the operator is obeyed.
[[nodiscard]] std::vector<std::string> algo_notes(std::span<const HcclSetting> settings,
                                                  const CollectiveRequest& request, const Topology& topology,
                                                  device::Generation generation);

}  // namespace hcclsim::hccl
