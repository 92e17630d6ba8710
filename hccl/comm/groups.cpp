#include "hccl/comm/groups.hpp"

#include <utility>

#include "base/error.hpp"
#include "hccl/comm/group_name.hpp"

namespace hcclsim::hccl {

std::optional<RefusedServer> refused_server(const DevicesOfServers& devices) {
  constexpr std::uint32_t mesh = 4;
  for (const auto& [server, used] : devices) {
    const std::size_t count = used.size();
    const bool known = count == 1 || count == 2 || count == 4 || count == 8;
    const bool together = count == 8 || *used.begin() / mesh == *used.rbegin() / mesh;
    if (!known || !together || count != devices.begin()->second.size()) return RefusedServer{server, count};
  }
  return std::nullopt;
}

std::optional<RefusedServer> refused_server(std::span<const Rank> ranks, const sim::Cluster& cluster,
                                            device::Generation generation) {
  if (generation != device::Generation::a1) return std::nullopt;
  DevicesOfServers devices;
  for (const Rank rank : ranks) devices[cluster.npu(rank).server].insert(cluster.npu(rank).device);
  return refused_server(devices);
}

void require_groups(std::span<const Communicator> groups, Rank ranks) {
  std::set<std::string_view> names{world_group};
  std::vector<const Communicator*> group_of(ranks, nullptr);
  for (const Communicator& group : groups) {
    if (!names.insert(group.name).second) {
      bad_input("group", "there are two groups named {}{}", group.name,
                group.name == world_group ? ", which is that of all ranks" : "");
    }
    if (group.ranks.empty()) bad_input("group", "{} has no ranks", group.name);
    for (const Rank rank : group.ranks) {
      if (rank >= ranks) bad_input("group", "{} holds rank {}; accepted: 0 to {}", group.name, rank, ranks - 1);
      const Communicator* const other = std::exchange(group_of[rank], &group);
      if (other == nullptr) continue;
      bad_input("group", "rank {} is in {} and in {}; groups that are at work at the same time share no rank", rank,
                other->name, group.name);
    }
  }
}

std::vector<Rank> ranks_in_none(std::span<const Communicator> groups, Rank ranks) {
  std::vector<bool> in_one(ranks, false);
  for (const Communicator& group : groups) {
    for (const Rank rank : group.ranks) in_one[rank] = true;
  }
  std::vector<Rank> none;
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (!in_one[rank]) none.push_back(rank);
  }
  return none;
}

}  // namespace hcclsim::hccl
