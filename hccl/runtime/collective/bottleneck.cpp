#include "hccl/runtime/collective/bottleneck.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  const PathTime& path = stats.path;
  const auto longest = std::max_element(path.on_links.begin(), path.on_links.end());
  for (std::size_t kind = 0; kind < path.on_links.size(); ++kind) {
    const Seconds time = path.on_links.at(kind);
    if (time == 0) continue;
    const Seconds shared = kind == static_cast<std::size_t>(longest - path.on_links.begin()) ? delays.others : 0;
    const sim::Link& link = cluster.links()[path.links.at(kind)];
    offer(BottleneckKind::link, time - shared, fmt::format("{} {}", name_of(link.kind), link.name));
  }
  offer(BottleneckKind::reduction, path.reducing, "AI-core reduction");
  offer(BottleneckKind::copy, path.copying, "HBM copy");
  offer(BottleneckKind::hbm, path.on_hbm, "HBM");
  offer(BottleneckKind::others, delays.others, "other collectives");
  offer(BottleneckKind::launch, delays.launch + path.issuing, "host launch");
  offer(BottleneckKind::alpha, path.alpha(), "alpha");
  offer(BottleneckKind::late_rank, path.start - arrival, "late rank");
  return limit;
}

Bottleneck bottleneck_of(const CollectiveTime& time, const sim::Cluster& cluster, Seconds others) {
  // The host's part: all of the issue that the device waits for, nothing of one that it hides.
  constexpr double rounding = 1e-9;
  const bool waits =
      time.per_iteration > time.duration * (1 + rounding) || time.issue > time.per_iteration * (1 - rounding);
  // Ranks that arrive late do so because of iterations before, which is no limit of this one.
  return find_bottleneck(time.stats, cluster, time.stats.path.start,
                         {.others = others, .launch = waits ? time.issue : 0});
}

}  // namespace hcclsim::hccl
