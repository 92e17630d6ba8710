#pragma once

#include "base/units.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/operation.hpp"
#include "sim/cluster.hpp"

/// The least time in which a collective can be done on a cluster, whatever the algorithm: some rank has to send
/// busbw / algbw of the payload (bandwidth.hpp), and all that it sends leaves through the first links of its routes.
/// Set-ups, latencies and reductions come on top; sharing of links further on is not looked at.
namespace hcclsim::hccl {

/// 0 for one rank.
[[nodiscard]] Seconds time_bound(const Operation& operation, const Communicator& communicator, sim::Cluster& cluster);

}  // namespace hcclsim::hccl
