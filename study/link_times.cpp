#include "study/link_times.hpp"

#include <algorithm>

namespace hcclsim::study {

Seconds LinkTimes::message(std::uint32_t source, std::uint32_t destination, Bytes bytes) {
  const Way& between = way(source, destination);
  return between.latency + static_cast<double>(bytes) * between.seconds_per_byte;
}

Seconds LinkTimes::allreduce(std::uint32_t stage, Bytes bytes) {
  if (replicas_ == 1) return 0;
  const Way& around = way(stage, stage);
  const double steps = 2.0 * (replicas_ - 1);
  return steps * (around.latency + static_cast<double>(bytes) / replicas_ * around.seconds_per_byte);
}

LinkTimes::Way LinkTimes::way_of(const Flows& flows) {
  std::map<sim::LinkId, Rank> flows_of_link;
  for (const auto& [source, destination] : flows) {
    for (const sim::LinkId link : cluster_.route(source, destination).links) ++flows_of_link[link];
  }
  Way way;
  for (const auto& [source, destination] : flows) {
    const sim::Route& route = cluster_.route(source, destination);
    way.latency = std::max(way.latency, route.latency);
    way.seconds_per_byte = std::max(way.seconds_per_byte, route.write_factor / cluster_.capacity(route.slowest));
  }
  for (const auto& [link, count] : flows_of_link) {
    const double sharing = cluster_.links()[link].shared ? count : 1;
    way.seconds_per_byte = std::max(way.seconds_per_byte, sharing / cluster_.capacity(link));
  }
  return way;
}

const LinkTimes::Way& LinkTimes::way(std::uint32_t source, std::uint32_t destination) {
  const auto [found, is_new] = ways_.try_emplace({source, destination});
  if (!is_new) return found->second;
  Flows flows;
  for (Rank position = 0; position < replicas_; ++position) {
    const Rank to = source == destination ? (position + 1) % replicas_ : position;
    flows.emplace_back(source * replicas_ + position, destination * replicas_ + to);
  }
  found->second = way_of(flows);
  return found->second;
}

}  // namespace hcclsim::study
