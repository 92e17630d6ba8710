#include "hccl/comm/groups.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

std::optional<RefusedServer> refused_server(std::span<const Rank> ranks, const sim::Cluster& cluster,
                                            device::Generation generation) {
  if (generation != device::Generation::a1) return std::nullopt;
  constexpr std::uint32_t mesh = 4;
  std::map<std::uint32_t, std::set<std::uint32_t>> devices;  // by server
  for (const Rank rank : ranks) devices[cluster.npu(rank).server].insert(cluster.npu(rank).device);
  for (const auto& [server, used] : devices) {
    const std::size_t count = used.size();
    const bool known = count == 1 || count == 2 || count == 4 || count == 8;
    const bool together = count == 8 || *used.begin() / mesh == *used.rbegin() / mesh;
    if (!known || !together || count != devices.begin()->second.size()) return RefusedServer{server, count};
  }
  return std::nullopt;
}

Groups::Groups(const sim::Cluster& cluster, device::Generation generation, Rank world_size)
    : cluster_(cluster), generation_(generation) {
  if (world_size == 0 || world_size > cluster.size()) {
    bad_input("group", "a world of {} ranks on {}, which has {} NPUs", world_size, cluster.path(), cluster.size());
  }
  groups_.try_emplace(std::string(world_group), world_communicator(world_size));
}

void Groups::create_group(const std::string& group, Rank rank_num, std::vector<Rank> rank_ids) {
  require_group_name(group, "group");
  if (group == world_group) bad_input("group", "{} is the group of all ranks, which is there already", world_group);
  if (groups_.contains(group)) bad_input("group", "group '{}' exists already; destroy it first", group);
  if (rank_num == 0 || rank_num > most_group_ranks) {
    bad_input("group", "group '{}': rank_num is {}; accepted: 1 to {}", group, rank_num, most_group_ranks);
  }
  if (rank_num != rank_ids.size()) {
    bad_input("group", "group '{}': rank_num is {}, but rank_ids has {}", group, rank_num, rank_ids.size());
  }
  std::set<Rank> seen;
  for (const Rank rank : rank_ids) {
    if (rank >= rank_size()) {
      bad_input("group", "group '{}': rank {} is not in the world; accepted: 0 to {}", group, rank, rank_size() - 1);
    }
    if (!seen.insert(rank).second) bad_input("group", "group '{}': rank {} is given twice", group, rank);
  }
  if (const auto refused = refused_server(rank_ids, cluster_, generation_)) {
    bad_input("group", "group '{}': {} NPUs of server {}; accepted: {}", group, refused->npus, refused->server,
              group_rule_910a);
  }
  groups_.try_emplace(group, Communicator{group, std::move(rank_ids)});
}

void Groups::destroy_group(const std::string& group) {
  if (group == world_group) bad_input("group", "{} cannot be destroyed", world_group);
  static_cast<void>(communicator(group));
  groups_.erase(group);
}

const Communicator& Groups::communicator(std::string_view group) const {
  const auto found = groups_.find(group);
  if (found != groups_.end()) return found->second;
  std::string names;
  for (const auto& [name, communicator] : groups_) names += (names.empty() ? "" : ", ") + name;
  bad_input("group", "group '{}' does not exist; there are: {}", group, names);
}

Rank Groups::rank_size(std::string_view group) const { return static_cast<Rank>(communicator(group).ranks.size()); }

Rank Groups::local_rank_size(Rank world_rank, std::string_view group) const {
  static_cast<void>(group_rank_from_world_rank(world_rank, group));
  const std::vector<Rank>& ranks = communicator(group).ranks;
  const std::uint32_t server = cluster_.npu(world_rank).server;
  return static_cast<Rank>(
      std::count_if(ranks.begin(), ranks.end(), [&](Rank rank) { return cluster_.npu(rank).server == server; }));
}

Rank Groups::local_rank_id(Rank world_rank, std::string_view group) const {
  const auto place = static_cast<std::ptrdiff_t>(group_rank_from_world_rank(world_rank, group));
  const std::vector<Rank>& ranks = communicator(group).ranks;
  const std::uint32_t server = cluster_.npu(world_rank).server;
  return static_cast<Rank>(std::count_if(ranks.begin(), ranks.begin() + place,
                                         [&](Rank rank) { return cluster_.npu(rank).server == server; }));
}

Rank Groups::world_rank_from_group_rank(std::string_view group, Rank group_rank) const {
  const std::vector<Rank>& ranks = communicator(group).ranks;
  if (group_rank < ranks.size()) return ranks[group_rank];
  bad_input("group", "group '{}' has {} ranks, not a rank {}; accepted: 0 to {}", group, ranks.size(), group_rank,
            ranks.size() - 1);
}

Rank Groups::group_rank_from_world_rank(Rank world_rank, std::string_view group) const {
  const std::vector<Rank>& ranks = communicator(group).ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), world_rank);
  if (found != ranks.end()) return static_cast<Rank>(found - ranks.begin());
  bad_input("group", "world rank {} is not in group '{}'", world_rank, group);
}

}  // namespace hcclsim::hccl
