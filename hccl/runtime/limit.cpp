#include "hccl/runtime/limit.hpp"

#include <fmt/format.h>

namespace hcclsim::hccl {

Limit explain_limit(const CollectiveStats& stats, const sim::Cluster& cluster, Seconds arrival, const Delays& delays) {
  Limit limit;
  Seconds largest = 0;
  const auto offer = [&](LimitKind kind, Seconds time, const std::string& name) {
    if (time <= largest) return;
    largest = time;
    limit = {kind, name};
  };
  Seconds rest = stats.last_end - stats.last_arrival - stats.reducing - stats.copying - delays.others;
  for (const CollectiveStats::LinkLoad& load : stats.busiest_links) {
    rest -= load.time;
    const sim::Link& link = cluster.links()[load.link];
    offer(LimitKind::link, load.time, fmt::format("{} {}", name_of(link.kind), link.name));
  }
  offer(LimitKind::reduction, stats.reducing, "AI-core reduction");
  offer(LimitKind::copy, stats.copying, "HBM copy");
  offer(LimitKind::others, delays.others, "other collectives");
  offer(LimitKind::launch, delays.launch, "host launch");
  offer(LimitKind::alpha, rest, "alpha");
  offer(LimitKind::late_rank, stats.last_arrival - arrival, "late rank");
  return limit;
}

Limit limit_of(const CollectiveTime& time, const sim::Cluster& cluster, Seconds launch, Seconds others) {
  // The host's part: all of the launch that the device waits for, nothing of one that it hides.
  constexpr double rounding = 1e-9;
  const bool waits =
      time.per_iteration > time.duration * (1 + rounding) || launch > time.per_iteration * (1 - rounding);
  // Ranks that arrive late do so because of iterations before, which is no limit of this one.
  return explain_limit(time.stats, cluster, time.stats.last_arrival, {.others = others, .launch = waits ? launch : 0});
}

}  // namespace hcclsim::hccl
