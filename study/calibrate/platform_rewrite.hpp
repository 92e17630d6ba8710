#pragma once

#include <map>
#include <string>

#include "sim/cluster.hpp"

/// A platform file with other speeds for the links of some kinds, as sim::Cluster::adjust changes them in memory.
namespace hcclsim::study {

/// The contents of the file `path`, which must be a valid platform, with the bandwidth, read and write speeds of the
/// links of each kind times its factor and their latencies later by the addition. Ranges (low, high) are widened to
/// hold the new bandwidth. Every changed link, and the clusters whose links SimGrid makes, get a comment with `source`
/// in front; `link.KIND.source` becomes "calibrated: SOURCE".
[[nodiscard]] std::string rewritten_platform(const std::string& path,
                                             const std::map<sim::LinkKind, sim::LinkAdjustment>& adjustments,
                                             const std::string& source);

}  // namespace hcclsim::study
