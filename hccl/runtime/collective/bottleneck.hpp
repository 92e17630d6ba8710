#pragma once

#include <cstdint>
#include <string>

#include "base/units.hpp"
#include "hccl/runtime/collective/collective_run.hpp"
#include "hccl/runtime/simulate.hpp"
#include "sim/cluster.hpp"

/// Why a collective took as long as it did, in one word for a table: the largest part of its critical path.
namespace hcclsim::hccl {

enum class BottleneckKind : std::uint8_t {
  none,       ///< it took no time: one NPU
  link,       ///< bytes on links of one kind
  reduction,  ///< reductions by an AI core
  copy,       ///< copies within an NPU
  hbm,        ///< transfers for which an HBM is too slow
  alpha,      ///< set-ups and notifies
  late_rank,  ///< the rank waited for others to arrive
  others,     ///< it shared links with other collectives
  launch,     ///< the host issued it late
};

struct Bottleneck {
  BottleneckKind kind = BottleneckKind::none;
  std::string name = "none";  ///< for people; of links their kind, and the most loaded of those that the path used
};

/// What came from outside the collective.
struct Delays {
  Seconds others = 0;  ///< its time minus that which it takes alone
  Seconds launch = 0;  ///< time of the host for which the device waited
};

/// The largest part of the critical path of a collective as a rank that arrived at `arrival` sees it: waiting for the
/// rank whose arrival the path begins with, bytes on links of one kind (the levels of a hierarchy use kinds of their
/// own), reductions by an AI core, copies, delays from outside, or set-ups, latencies and notifies. What other
/// collectives add is counted for them, not for the links that were shared.
[[nodiscard]] Bottleneck find_bottleneck(const CollectiveStats& stats, const sim::Cluster& cluster, Seconds arrival,
                                         const Delays& delays = {});

/// The same of a call that was simulated by itself (simulate.hpp); `others` as in Delays.
[[nodiscard]] Bottleneck bottleneck_of(const CollectiveTime& time, const sim::Cluster& cluster, Seconds others = 0);

}  // namespace hcclsim::hccl
