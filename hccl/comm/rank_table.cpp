#include "hccl/comm/rank_table.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "base/json.hpp"

namespace hcclsim::hccl {

std::string_view name_of(RankTableVersion version) {
  constexpr std::array<std::string_view, 3> names{"group_list", "1.0", "1.2"};
  return names[static_cast<std::size_t>(version)];
}

Rank RankTable::ranks() const {
  std::size_t ranks = 0;
  for (const RankTableServer& server : servers) ranks += server.devices.size();
  return static_cast<Rank>(ranks);
}

std::string to_string(const RankTableProblem& problem, const std::string& file) {
  if (problem.path.empty()) return fmt::format("{}: {}", file, problem.message);
  return fmt::format("{}: {}: {}", file, problem.path, problem.message);
}

void require_none(const std::vector<RankTableProblem>& problems, const std::string& file) {
  if (problems.empty()) return;
  const std::size_t more = problems.size() - 1;
  bad_input("rank-table", "{}{}", to_string(problems.front(), file),
            more == 0 ? "" : fmt::format(" (and {} more: hcclsim ranktable check {})", more, file));
}

std::string write_rank_table(const RankTable& table) {
  if (table.version == RankTableVersion::group_list) internal_error("rank tables are written as version 1.0 or 1.2");
  Json servers = Json::array();
  for (const RankTableServer& server : table.servers) {
    Json devices = Json::array();
    for (const RankTableDevice& device : server.devices) {
      Json entry{{"device_id", fmt::to_string(device.device)}};
      if (device.super_device.has_value()) entry["super_device_id"] = fmt::to_string(*device.super_device);
      if (!device.device_ip.empty()) entry["device_ip"] = device.device_ip;
      entry["rank_id"] = fmt::to_string(device.rank);
      devices.push_back(std::move(entry));
    }
    servers.push_back({{"server_id", server.id}, {"device", std::move(devices)}});
  }
  Json root{{"status", "completed"},
            {"version", name_of(table.version)},
            {"server_count", fmt::to_string(table.servers.size())},
            {"server_list", std::move(servers)}};
  Json pods = Json::array();
  for (const SuperPod& pod : table.super_pods) {
    Json members = Json::array();
    for (const std::uint32_t server : pod.servers) {
      members.push_back(Json::object({{"server_id", table.servers[server].id}}));
    }
    pods.push_back({{"super_pod_id", pod.id}, {"server_list", std::move(members)}});
  }
  if (!pods.empty()) root["super_pod_list"] = std::move(pods);
  return root.dump(2) + '\n';
}

}  // namespace hcclsim::hccl
