#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hccl/comm/rank_table.hpp"
#include "hccl/comm/rank_table_json.hpp"

/// Contradictions between the devices of a rank table: ranks given twice, addresses shared, …
namespace hcclsim::hccl {

/// A device as it was read. What is absent was not given, or was wrong and has been reported.
struct RankTableEntry {
  std::size_t server = 0;  ///< place in RankTable::servers
  std::string path;        ///< of the device
  std::string rank_path;   ///< of its rank_id
  std::optional<Rank> rank;
  std::optional<std::uint32_t> device;
  std::optional<std::uint32_t> super_device;
  std::optional<std::uint32_t> device_port, backup_port, host_port;
  std::optional<std::string> device_ip;  ///< as written
  std::string address, backup_address;   ///< of device_ip and backup_device_ip in network order; empty: none
};

/// Adds problems and notes about the entries of a table whose servers and super-pods are known.
void check_rules(const RankTable& table, std::span<const RankTableEntry> entries, JsonReader& json,
                 std::vector<std::string>& notes);

}  // namespace hcclsim::hccl
