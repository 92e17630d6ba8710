#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "hccl/comm/communicator.hpp"
#include "sim/cluster.hpp"

/// Groups of ranks as in HCCL's Python interface (hccl.manage.api): created by name from world ranks, queried and
/// destroyed. HCCL answers for the calling rank; here that world rank is an argument. All limits are those of HCCL's
/// documentation of create_group.
namespace hcclsim::hccl {

inline constexpr Rank most_group_ranks = 32768;

/// HCCL's rule for the NPUs that a group may take from servers of the 910A generation.
inline constexpr std::string_view group_rule_910a =
    "1, 2, 4 or 8, the same in all servers, and 2 or 4 only among devices 0-3 or 4-7";

/// A server from which a group takes NPUs in a way that HCCL does not accept.
struct RefusedServer {
  std::uint32_t server = 0;
  std::size_t npus = 0;
};

/// The first server that breaks group_rule_910a; none on other generations.
[[nodiscard]] std::optional<RefusedServer> refused_server(std::span<const Rank> ranks, const sim::Cluster& cluster,
                                                          device::Generation generation);

/// The groups of one simulated job. All functions throw Error(bad_input, "group") for groups that do not exist and for
/// ranks that are not in them. The rank of a member within its group is its place in the list the group was made from.
class Groups {
 public:
  /// Starts with the world group alone: the first `world_size` ranks of the cluster. The cluster must outlive this
  /// object.
  Groups(const sim::Cluster& cluster, device::Generation generation, Rank world_size);

  /// Throws if the name is empty, too long, taken or that of the world group, if ranks are given twice or are not in
  /// the world, if rank_num is not their number, and on 910A if refused_server() finds a server.
  void create_group(const std::string& group, Rank rank_num, std::vector<Rank> rank_ids);
  /// Throws for the world group.
  void destroy_group(const std::string& group);

  [[nodiscard]] const Communicator& communicator(std::string_view group = world_group) const;
  [[nodiscard]] Rank rank_size(std::string_view group = world_group) const;
  /// Members on the server of a member.
  [[nodiscard]] Rank local_rank_size(Rank world_rank, std::string_view group = world_group) const;
  /// Number of a member among those on its server.
  [[nodiscard]] Rank local_rank_id(Rank world_rank, std::string_view group = world_group) const;
  [[nodiscard]] Rank world_rank_from_group_rank(std::string_view group, Rank group_rank) const;
  /// Also HCCL's get_rank_id.
  [[nodiscard]] Rank group_rank_from_world_rank(Rank world_rank, std::string_view group = world_group) const;

 private:
  const sim::Cluster& cluster_;
  device::Generation generation_;
  std::map<std::string, Communicator, std::less<>> groups_;
};

}  // namespace hcclsim::hccl
