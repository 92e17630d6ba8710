#pragma once

#include <array>
#include <numeric>

#include "base/units.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::hccl {

/// What the time from the arrival of a rank to a date consists of, along the critical path: from a task back to what it
/// waited for. Every queue of a collective under way carries one on, a post hands its own to the wait that it ends, a
/// join takes that of the queue which comes last. So the path is known when the last rank has ended, without a trace.
struct PathTime {
  Seconds start = 0;  ///< a rank arrives: the path begins
  Seconds end = 0;    ///< of the path that leads to the end of a rank
  /// By kind of link: transfers behind their set-up and latency, and the most loaded link that one of them needed.
  std::array<Seconds, sim::link_kinds> on_links{};
  std::array<sim::LinkId, sim::link_kinds> links{};
  Seconds sharing = 0;   ///< part of the time on links: what they take longer because others use them too
  Seconds on_hbm = 0;    ///< on shared NPUs: what transfers take longer because an HBM is full
  Seconds reducing = 0;  ///< by an AI core
  Seconds copying = 0;   ///< within an NPU
  Seconds issuing = 0;   ///< waiting for a task that the host issues

  /// Bytes at the speed of idle links.
  [[nodiscard]] Seconds beta() const { return std::accumulate(on_links.begin(), on_links.end(), 0.0) - sharing; }
  /// Reductions and copies on an NPU.
  [[nodiscard]] Seconds gamma() const { return reducing + copying; }
  /// What is left: set-ups, latencies, notifies, forks and joins of queues.
  [[nodiscard]] Seconds alpha() const { return end - start - beta() - sharing - on_hbm - gamma() - issuing; }
};

}  // namespace hcclsim::hccl
