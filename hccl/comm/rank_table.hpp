#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// HCCL's rank tables: JSON files that say which NPU of which server each rank is. Three forms are known:
///  - version 1.0 (910A and A2): servers with their devices;
///  - version 1.2 (A3): the same, and which servers form a super-pod;
///  - the older form without version, `group_list`, for the 910A. Its rank ids are read; without them devices are
///    numbered as HCCL's own reader does (topoinfo_ranktableStandard.cc): by the text of server_id, then by device_id.
/// The rules are those of HCCL's user guide, "rank table"; docs/formats.md lists them. Servers are identified by their
/// position in the table; hccl/comm/placement.hpp finds their NPUs in a cluster.
namespace hcclsim::hccl {

enum class RankTableVersion : std::uint8_t { group_list, v1_0, v1_2 };

[[nodiscard]] std::string_view name_of(RankTableVersion version);

struct RankTableDevice {
  std::uint32_t device = 0;  ///< number within the server
  Rank rank = 0;
  std::string device_ip;                      ///< of its RoCE port; empty: none is given
  std::optional<std::uint32_t> super_device;  ///< number within the super-pod
  std::string path;                           ///< where it stands: "server_list[1].device[3]"
};

struct RankTableServer {
  std::string id;
  std::vector<RankTableDevice> devices;
  std::string path;  ///< "server_list[1]"
};

struct SuperPod {
  std::string id;
  std::vector<std::uint32_t> servers;  ///< places in RankTable::servers
};

struct RankTable {
  std::string file;  ///< for messages
  RankTableVersion version = RankTableVersion::v1_0;
  std::vector<RankTableServer> servers;
  std::string group;  ///< name of the group of all ranks (group_list); empty: none is given
  /// Empty: every server is by itself, and RoCE connects them ("AI server mode").
  std::vector<SuperPod> super_pods;
  /// Sentences on what is allowed but rarely intended, such as reserved ports.
  std::vector<std::string> notes;

  [[nodiscard]] Rank ranks() const;
};

/// What is wrong, and with which value: "server_list[1].device[3].rank_id". An empty path means the whole file.
struct RankTableProblem {
  std::string path;
  std::string message;
};

struct CheckedRankTable {
  RankTable table;  ///< complete only without problems
  std::vector<RankTableProblem> problems;
};

/// Reads a table and finds everything that is wrong with it. Throws Error(bad_input, "rank-table") for a file that
/// cannot be read and, with line and column, for text that is not JSON.
[[nodiscard]] CheckedRankTable check_rank_table(const std::string& path);
/// The same for a text; `file` names it in messages.
[[nodiscard]] CheckedRankTable check_rank_table(std::string_view json, const std::string& file);

/// Reads a table; throws Error(bad_input, "rank-table") for the first thing that is wrong with it.
[[nodiscard]] RankTable read_rank_table(const std::string& path);

/// "FILE: PATH: message".
[[nodiscard]] std::string to_string(const RankTableProblem& problem, const std::string& file);

/// Throws Error(bad_input, "rank-table") for the first problem, if there is one, with the number of the others.
void require_none(const std::vector<RankTableProblem>& problems, const std::string& file);

/// The table as JSON, version 1.0 or 1.2; the same table gives the same bytes.
[[nodiscard]] std::string write_rank_table(const RankTable& table);

}  // namespace hcclsim::hccl
