#include "hccl/comm/groups.hpp"

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

}  // namespace hcclsim::hccl
