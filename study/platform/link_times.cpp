#include "study/platform/link_times.hpp"

#include <algorithm>
#include <utility>

namespace hcclsim::study {

Seconds LinkTimes::message(std::uint32_t source, std::uint32_t destination, Bytes bytes) {
  Flows flows;
  for (Rank place = 0; place < devices_; ++place) {
    flows.emplace_back(source * devices_ + place, destination * devices_ + place);
  }
  const Way& between = way(std::move(flows));
  return between.latency + static_cast<double>(bytes) * between.seconds_per_byte;
}

Seconds LinkTimes::ring(const std::vector<hccl::Communicator>& groups, Bytes bytes) {
  const std::size_t ranks = groups.front().ranks.size();
  if (ranks == 1) return 0;
  Flows flows;
  for (const hccl::Communicator& group : groups) {
    for (std::size_t member = 0; member < ranks; ++member) {
      flows.emplace_back(group.ranks[member], group.ranks[(member + 1) % ranks]);
    }
  }
  const Way& around = way(std::move(flows));
  const auto steps = static_cast<double>(ranks - 1);
  return steps * (around.latency + static_cast<double>(bytes) / static_cast<double>(ranks) * around.seconds_per_byte);
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

const LinkTimes::Way& LinkTimes::way(Flows flows) {
  const auto [found, is_new] = ways_.try_emplace(std::move(flows));
  if (is_new) found->second = way_of(found->first);
  return found->second;
}

}  // namespace hcclsim::study
