#pragma once

#include <cstdint>
#include <string>

#include "base/units.hpp"
#include "hccl/runtime/collective_run.hpp"
#include "hccl/runtime/simulate.hpp"
#include "sim/cluster.hpp"

/// Why a collective took as long as it did, in one word for a table: the largest part of its time.
namespace hcclsim::hccl {

enum class BottleneckKind : std::uint8_t {
  none,       ///< it took no time: one NPU
  link,       ///< the link of its kind with most to carry
  reduction,  ///< reductions by an AI core
  copy,       ///< copies within an NPU
  alpha,      ///< set-ups and notifies
  late_rank,  ///< the rank waited for others to arrive
  others,     ///< it shared links with other collectives
  launch,     ///< the host issued it late
};

struct Bottleneck {
  BottleneckKind kind = BottleneckKind::none;
  std::string name = "none";  ///< for people; of a link its kind and name
};

/// What came from outside the collective.
struct Delays {
  Seconds others = 0;  ///< its time minus that which it takes alone
  Seconds launch = 0;  ///< time of the host for which the device waited
};

/// The largest part of the time of a collective as a rank that arrived at `arrival` sees it: waiting for the last rank,
/// the busiest link of one kind (the levels of a hierarchy use kinds of their own, one after the other), reductions by
/// an AI core, copies, delays from outside, or what is left, the set-ups and notifies.
[[nodiscard]] Bottleneck find_bottleneck(const CollectiveStats& stats, const sim::Cluster& cluster, Seconds arrival,
                                         const Delays& delays = {});

/// The same of a call that was simulated by itself (simulate.hpp), whose launch costs the host `launch`; `others` as in
/// Delays.
[[nodiscard]] Bottleneck bottleneck_of(const CollectiveTime& time, const sim::Cluster& cluster, Seconds launch,
                                       Seconds others = 0);

}  // namespace hcclsim::hccl
