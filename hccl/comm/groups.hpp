#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "hccl/comm/communicator.hpp"
#include "sim/cluster.hpp"

/// Which ranks may form a group, by HCCL's documentation of create_group (hccl.manage.api).
namespace hcclsim::hccl {

/// HCCL's rule for the NPUs that a group may take from servers of the 910A generation.
inline constexpr std::string_view group_rule_910a =
    "1, 2, 4 or 8, the same in all servers, and 2 or 4 only among devices 0-3 or 4-7";

/// A server from which a group takes NPUs in a way that HCCL does not accept.
struct RefusedServer {
  std::uint32_t server = 0;
  std::size_t npus = 0;
};

/// Numbers of the devices that are used, by server.
using DevicesOfServers = std::map<std::uint32_t, std::set<std::uint32_t>>;

/// The first server that breaks group_rule_910a.
[[nodiscard]] std::optional<RefusedServer> refused_server(const DevicesOfServers& devices);
/// The same of ranks; none on other generations.
[[nodiscard]] std::optional<RefusedServer> refused_server(std::span<const Rank> ranks, const sim::Cluster& cluster,
                                                          device::Generation generation);

/// Throws Error(bad_input, "group") for groups that cannot be at work at the same time among so many ranks: a name that
/// comes twice or is that of all ranks, a rank that is not there or is in two groups.
void require_groups(std::span<const Communicator> groups, Rank ranks);

/// Ranks that are in none of the groups.
[[nodiscard]] std::vector<Rank> ranks_in_none(std::span<const Communicator> groups, Rank ranks);

}  // namespace hcclsim::hccl
