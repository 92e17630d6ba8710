#include "hccl/runtime/bottleneck.hpp"

#include <fmt/format.h>

namespace hcclsim::hccl {

Bottleneck find_bottleneck(const CollectiveStats& stats, const sim::Cluster& cluster, Seconds arrival,
                           const Delays& delays) {
  Bottleneck limit;
  Seconds largest = 0;
  const auto offer = [&](BottleneckKind kind, Seconds time, const std::string& name) {
    if (time <= largest) return;
    largest = time;
    limit = {kind, name};
  };
  Seconds rest = stats.last_end - stats.last_arrival - stats.reducing - stats.copying - delays.others;
  for (const CollectiveStats::LinkLoad& load : stats.busiest_links) {
    rest -= load.time;
    const sim::Link& link = cluster.links()[load.link];
    offer(BottleneckKind::link, load.time, fmt::format("{} {}", name_of(link.kind), link.name));
  }
  offer(BottleneckKind::reduction, stats.reducing, "AI-core reduction");
  offer(BottleneckKind::copy, stats.copying, "HBM copy");
  offer(BottleneckKind::others, delays.others, "other collectives");
  offer(BottleneckKind::launch, delays.launch, "host launch");
  offer(BottleneckKind::alpha, rest, "alpha");
  offer(BottleneckKind::late_rank, stats.last_arrival - arrival, "late rank");
  return limit;
}

Bottleneck bottleneck_of(const CollectiveTime& time, const sim::Cluster& cluster, Seconds launch, Seconds others) {
  // The host's part: all of the launch that the device waits for, nothing of one that it hides.
  constexpr double rounding = 1e-9;
  const bool waits =
      time.per_iteration > time.duration * (1 + rounding) || launch > time.per_iteration * (1 - rounding);
  // Ranks that arrive late do so because of iterations before, which is no limit of this one.
  return find_bottleneck(time.stats, cluster, time.stats.last_arrival,
                         {.others = others, .launch = waits ? launch : 0});
}

}  // namespace hcclsim::hccl
