#include "hccl/comm/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "hccl/comm/rank_table_json.hpp"
#include "sim/platform/catalog.hpp"

namespace hcclsim::hccl {
namespace {

/// "device_id 5" of a device, for the older form too.
std::string device_path(const RankTableDevice& device) { return path_of(device.path, "device_id"); }

/// Super-pod of each server; each for itself if the table has none.
std::vector<std::uint32_t> super_pods_of(const RankTable& table) {
  std::vector<std::uint32_t> pods(table.servers.size());
  for (std::uint32_t server = 0; server < pods.size(); ++server) pods[server] = server;
  for (std::uint32_t pod = 0; pod < table.super_pods.size(); ++pod) {
    for (const std::uint32_t server : table.super_pods[pod].servers) pods[server] = pod;
  }
  return pods;
}

/// Servers of each super-pod, in the order of the servers; those of one super-pod follow each other.
std::vector<std::uint32_t> sizes_of_super_pods(const RankTable& table) {
  const std::vector<std::uint32_t> pods = super_pods_of(table);
  std::vector<std::uint32_t> sizes;
  for (std::size_t server = 0; server < pods.size(); ++server) {
    if (server == 0 || pods[server] != pods[server - 1]) sizes.push_back(0);
    ++sizes.back();
  }
  return sizes;
}

/// Whether two NPUs reach each other over the unified bus alone, or would if RoCE were not used in its place.
bool on_one_bus(sim::Cluster& cluster, Rank from, Rank to) {
  const sim::Route& route = cluster.route(from, to);
  if (route.between_ports) return cluster.npu(from).super_pod == cluster.npu(to).super_pod;
  bool bus = false;
  for (const sim::LinkId link : route.links) {
    if (cluster.links()[link].kind == sim::LinkKind::roce) return false;
    bus = bus || cluster.links()[link].kind == sim::LinkKind::ub;
  }
  return bus;
}

}  // namespace

Placement find_npus(const RankTable& table, const sim::Cluster& cluster) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Rank> npu_at;  // server, device
  for (Rank npu = 0; npu < cluster.size(); ++npu) npu_at[{cluster.npu(npu).server, cluster.npu(npu).device}] = npu;
  Placement placement;
  placement.npus.resize(table.ranks());
  for (std::uint32_t server = 0; server < table.servers.size(); ++server) {
    if (server >= cluster.servers()) {
      placement.problems.push_back(
          {table.servers[server].path,
           fmt::format("the table has {} servers, {} has {}; 'hcclsim platform generate --rank-table' makes one for it",
                       table.servers.size(), cluster.path(), cluster.servers())});
      break;
    }
    for (const RankTableDevice& device : table.servers[server].devices) {
      const auto found = npu_at.find({server, device.device});
      if (found != npu_at.end()) {
        placement.npus.at(device.rank) = found->second;
        continue;
      }
      std::string accepted;
      for (auto npu = npu_at.lower_bound({server, 0}); npu != npu_at.end() && npu->first.first == server; ++npu) {
        accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", npu->first.second);
      }
      placement.problems.push_back(
          {device_path(device), fmt::format("\"{}\" is not a device of server {} of {}; accepted: {}", device.device,
                                            server, cluster.path(), accepted)});
    }
  }
  return placement;
}

void place_ranks(const RankTable& table, sim::Cluster& cluster) {
  const Placement placement = find_npus(table, cluster);
  require_none(placement.problems, table.file);
  cluster.renumber(placement.npus);
}

void require_joined_as_in(const RankTable& table, sim::Cluster& cluster) {
  const std::vector<std::uint32_t> pods = super_pods_of(table);
  const auto pod_on_platform = [&](std::size_t server) {
    return cluster.npu(table.servers[server].devices.front().rank).super_pod;
  };
  for (std::size_t server = 1; server < pods.size(); ++server) {
    if (pods[server] != pods[server - 1] || pod_on_platform(server) == pod_on_platform(server - 1)) continue;
    bad_input("rank-table", "{}: {} and {} are in one super-pod, but {} has them in different ones", table.file,
              table.servers[server - 1].path, table.servers[server].path, cluster.path());
  }
  std::map<std::uint32_t, std::size_t> first_of;  // super-pod -> place of its first server
  for (std::size_t server = 0; server < pods.size(); ++server) first_of.try_emplace(pods[server], server);
  for (const auto& [pod, server] : first_of) {
    if (pod == 0) continue;
    const std::size_t other = first_of.at(0);
    if (!on_one_bus(cluster, table.servers[other].devices.front().rank, table.servers[server].devices.front().rank)) {
      continue;
    }
    bad_input("rank-table",
              "{}: {} and {} are {}, between which HCCL uses RoCE, but {} joins them over the unified bus; use a "
              "platform that joins them over RoCE, or put them into one super-pod (version 1.2, super_pod_list)",
              table.file, table.servers[other].path, table.servers[server].path,
              table.super_pods.empty() ? "servers without super-pod" : "in different super-pods", cluster.path());
  }
}

void require_roce_addresses(const RankTable& table) {
  if (table.servers.size() < 2) return;
  for (const RankTableServer& server : table.servers) {
    for (const RankTableDevice& device : server.devices) {
      if (!device.device_ip.empty()) continue;
      bad_input("rank-table", "{}: {} is missing: HCCL needs it where RoCE joins the servers (HCCL_INTER_HCCS_DISABLE)",
                table.file, path_of(device.path, "device_ip"));
    }
  }
}

RankTable rank_table_of(sim::Cluster& cluster, device::Generation generation, Rank npus) {
  RankTable table;
  table.file = cluster.path();
  const bool super_pods = generation == device::Generation::a3;
  table.version = super_pods ? RankTableVersion::v1_2 : RankTableVersion::v1_0;
  std::vector<Rank> first_of_pod;
  std::uint32_t super_device = 0;
  for (Rank rank = 0; rank < npus; ++rank) {
    const sim::Npu& npu = cluster.npu(rank);
    if (npu.server == table.servers.size()) {
      if (super_pods && (first_of_pod.empty() || !on_one_bus(cluster, first_of_pod.back(), rank))) {
        table.super_pods.push_back({fmt::to_string(first_of_pod.size()), {}});
        first_of_pod.push_back(rank);
        super_device = 0;
      }
      if (super_pods) table.super_pods.back().servers.push_back(npu.server);
      table.servers.push_back({fmt::format("node_{}", npu.server), {}, {}});
    }
    RankTableDevice device{npu.device, rank, {}, {}, {}};
    device.device_ip = fmt::format("10.{}.{}.{}", npu.server / 256, npu.server % 256, npu.device + 1);
    if (super_pods) device.super_device = super_device++;
    table.servers.back().devices.push_back(std::move(device));
  }
  const CheckedRankTable checked = check_rank_table(write_rank_table(table), table.file);
  if (!checked.problems.empty()) {
    bad_input("rank-table", "{}: no rank table can describe it: {}: {}", cluster.path(), checked.problems.front().path,
              checked.problems.front().message);
  }
  return table;
}

sim::PlatformOptions platform_for(const RankTable& table, sim::PlatformOptions options) {
  const bool a3_table = table.version == RankTableVersion::v1_2;
  if (options.soc.empty()) options.soc = a3_table ? "Ascend910_9391" : "Ascend910A";
  options.servers = static_cast<std::uint32_t>(table.servers.size());
  const sim::SocEntry& soc = sim::find_soc_entry(options.soc);
  const bool a3 = soc.server->topology == sim::ServerTopology::ub_plane;
  if (a3_table && !a3) {
    bad_input("rank-table", "{}: version: \"1.2\" is for A3, not for {}; use --soc 910_9391 or a table of version 1.0",
              table.file, soc.name);
  }
  if (a3) options.super_pods = sizes_of_super_pods(table);
  const std::uint32_t devices = options.npus_per_server == 0 ? soc.server->npus : options.npus_per_server;
  for (const RankTableServer& server : table.servers) {
    for (const RankTableDevice& device : server.devices) {
      if (device.device < devices) continue;
      bad_input("rank-table", "{}: {}: \"{}\" is not a device of a server of {} {}; accepted: 0 to {}", table.file,
                device_path(device), device.device, devices, soc.name, devices - 1);
    }
  }
  return options;
}

}  // namespace hcclsim::hccl
