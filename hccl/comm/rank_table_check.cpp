#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "base/input_file.hpp"
#include "hccl/comm/rank_table.hpp"
#include "hccl/comm/rank_table_json.hpp"
#include "hccl/comm/rank_table_rules.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint64_t largest_file = std::uint64_t{64} << 20;
constexpr std::size_t longest_server_id = 64;
constexpr std::uint64_t most_ranks = 32768;
constexpr std::uint32_t last_reserved_port = 1023;
constexpr std::uint64_t last_port = 65535;

/// Keys that are used by HCCL or by the tools that write its tables; none of them is a misspelling of another.
// clang-format off
constexpr std::array<std::string_view, 37> known_keys{
    "status", "version", "server_count", "server_list", "server_id", "server_ip", "host_ip", "container_ip",
    "hardware_type", "device", "device_id", "device_logical_id", "device_ip", "device_port", "backup_device_ip",
    "backup_device_port", "host_port", "rank_id", "super_device_id", "super_pod_list", "super_pod_id",
    "group_count", "group_list", "group_name", "instance_count", "device_count", "device_num", "server_num",
    "instance_list", "pod_name", "devices", "para_plane_nic_location", "para_plane_nic_name", "para_plane_nic_num",
    "board_id", "chip_info", "deploy_mode"};
// clang-format on

/// The address in network order, 4 bytes or 16; empty if it is none.
std::string parse_address(const std::string& text, bool only_v4) {
  std::array<char, 16> bytes{};
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return {bytes.data(), 4};
  if (!only_v4 && ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return {bytes.data(), 16};
  return {};
}

bool is_control(char letter) { return static_cast<unsigned char>(letter) < ' ' || letter == '\x7f'; }

/// Reads the values of a table one by one; check_rules() checks how they relate to each other.
class TableReader {
 public:
  explicit TableReader(CheckedRankTable& checked)
      : checked_(checked), table_(checked.table), json_(checked.problems, table_.notes, known_keys) {}

  void read(const JsonObject& root) {
    read_status(root);
    if (!read_version(root)) return;
    if (table_.version == RankTableVersion::group_list) {
      read_group(root);
    } else {
      read_servers(root);
    }
    read_super_pods(root);
    if (json_.complete()) check_rules(table_, entries_, json_, table_.notes);
    for (RankTableEntry& entry : entries_) {
      table_.servers[entry.server].devices.push_back({entry.device.value_or(0), entry.rank.value_or(0),
                                                      entry.device_ip.value_or(""), entry.super_device,
                                                      std::move(entry.path)});
    }
  }

 private:
  void read_status(const JsonObject& root) {
    const JsonText status = json_.text(root, "status", Need::required);
    if (!status.given || status.text == "completed") return;
    json_.problem(status.path, "{} is not accepted: \"completed\"{}", in_quotes(status.text),
                  status.text == "initializing" ? "; a table that is being initialized cannot be used yet" : "");
  }

  bool read_version(const JsonObject& root) {
    if (!root.value.contains("version") && root.value.contains("group_list")) {
      table_.version = RankTableVersion::group_list;
      return true;
    }
    const JsonText version = json_.text(root, "version", Need::required);
    if (!version.given) return false;
    if (version.text == "1.0" || version.text == "1.2") {
      table_.version = version.text == "1.0" ? RankTableVersion::v1_0 : RankTableVersion::v1_2;
      return true;
    }
    json_.problem(version.path,
                  "{} is not accepted{}: \"1.0\" (910A, A2), \"1.2\" (A3), or no version and a group_list",
                  in_quotes(version.text),
                  version.text == "2.0" ? " yet, the form of the Ascend 950 with a rank_list and levels" : "");
    return false;
  }

  void read_servers(const JsonObject& root) {
    const Need need = table_.version == RankTableVersion::v1_2 ? Need::optional : Need::required;
    const auto count = json_.number(root, "server_count", need, 1, most_ranks);
    const auto servers = json_.objects(root, "server_list");
    require_equal(root, "server_count", count, servers.size(), "server_list has");
    for (const JsonObject& server : servers) {
      const JsonText id = read_server_id(server);
      const auto [first, added] = server_of_.try_emplace(id.text, table_.servers.size());
      if (id.given && !added) {
        json_.problem(id.path, "{} is the name of {} too; every server needs its own", in_quotes(id.text),
                      table_.servers[first->second].path);
      }
      if (const JsonText host = json_.text(server, "host_ip", Need::optional);
          host.given && parse_address(host.text, true).empty()) {
        json_.problem(host.path, "{} is not an IPv4 address such as \"172.16.0.1\"", in_quotes(host.text));
      }
      for (const JsonObject& device : json_.objects(server, "device")) {
        read_device(device, device, table_.servers.size());
      }
      table_.servers.push_back({id.text, {}, server.path});
    }
  }

  JsonText read_server_id(const JsonObject& object) {
    JsonText id = json_.text(object, "server_id", Need::required);
    if (id.given && (id.text.empty() || id.text.size() > longest_server_id)) {
      json_.problem(id.path, "{} has {} characters; accepted: 1 to {}", in_quotes(id.text), id.text.size(),
                    longest_server_id);
    } else if (std::any_of(id.text.begin(), id.text.end(), is_control)) {
      json_.problem(id.path, "{} has control characters; accepted: a name that can be printed", in_quotes(id.text));
    }
    return id;
  }

  /// A device of a server; its rank stands in `ranked`, which in the older form is another object.
  void read_device(const JsonObject& object, const JsonObject& ranked, std::size_t server) {
    RankTableEntry entry;
    entry.server = server;
    entry.path = object.path;
    entry.rank_path = path_of(ranked.path, "rank_id");
    const bool may_lack_rank = table_.version == RankTableVersion::group_list;
    entry.rank = number(ranked, "rank_id", may_lack_rank ? Need::optional : Need::required, 0, UINT32_MAX);
    if (may_lack_rank && !ranked.value.contains("rank_id")) unranked_.push_back(entries_.size());
    const std::uint64_t last_device = table_.version == RankTableVersion::v1_2 ? 15 : 7;
    entry.device = number(object, "device_id", Need::required, 0, last_device);
    entry.device_ip = read_address(object, "device_ip", entry.address);
    read_address(object, "backup_device_ip", entry.backup_address);
    entry.device_port = read_port(object, "device_port");
    entry.backup_port = read_port(object, "backup_device_port");
    entry.host_port = read_port(object, "host_port");
    if (table_.version == RankTableVersion::v1_2) {
      entry.super_device = number(object, "super_device_id", Need::optional, 0, UINT32_MAX);
    }
    entries_.push_back(std::move(entry));
  }

  std::optional<std::uint32_t> number(const JsonObject& object, const char* key, Need need, std::uint64_t lowest,
                                      std::uint64_t highest) {
    const auto number = json_.number(object, key, need, lowest, highest);
    if (!number.has_value()) return std::nullopt;
    return static_cast<std::uint32_t>(*number);
  }

  /// The address as written, none if the key is missing; `address` gets it in network order.
  std::optional<std::string> read_address(const JsonObject& object, const char* key, std::string& address) {
    const JsonText text = json_.text(object, key, Need::optional);
    if (!object.value.contains(key)) return std::nullopt;
    if (!text.given) return text.text;
    address = parse_address(text.text, false);
    if (address.empty()) {
      json_.problem(text.path, "{} is not an IPv4 or IPv6 address such as \"192.168.1.8\"", in_quotes(text.text));
    }
    return text.text;
  }

  std::optional<std::uint32_t> read_port(const JsonObject& object, const char* key) {
    const auto port = number(object, key, Need::optional, 1, last_port);
    if (port.has_value() && *port <= last_reserved_port && !reserved_noted_) {
      reserved_noted_ = true;
      table_.notes.push_back(
          fmt::format("{}: ports up to {} are reserved for the system", path_of(object.path, key), last_reserved_port));
    }
    return port;
  }

  void read_super_pods(const JsonObject& root) {
    if (!root.value.contains("super_pod_list")) return;
    if (table_.version != RankTableVersion::v1_2) {
      table_.notes.emplace_back("super_pod_list: has a meaning in version 1.2 alone, not used");
      return;
    }
    std::vector<std::string> pod_of(table_.servers.size());  // paths
    std::map<std::string, std::string> names;
    const auto pods = json_.objects(root, "super_pod_list");
    for (const JsonObject& pod : pods) {
      const JsonText id = json_.text(pod, "super_pod_id", Need::required);
      const auto [first, added] = names.try_emplace(id.text, pod.path);
      if (id.given && (id.text.empty() || std::any_of(id.text.begin(), id.text.end(), is_control))) {
        json_.problem(id.path, "{} is not accepted: a name that can be printed", in_quotes(id.text));
      } else if (id.given && !added) {
        json_.problem(id.path, "{} is the name of {} too; every super-pod needs its own", in_quotes(id.text),
                      first->second);
      }
      SuperPod super_pod{id.text, {}};
      for (const JsonObject& server : json_.objects(pod, "server_list")) {
        const JsonText name = json_.text(server, "server_id", Need::required);
        if (!name.given) continue;
        const auto found = server_of_.find(name.text);
        if (found == server_of_.end()) {
          json_.problem(name.path, "{} is not a server_id of server_list", in_quotes(name.text));
        } else if (std::string& where = pod_of[found->second]; !where.empty()) {
          json_.problem(name.path, "{} stands in {} already; a server is in one super-pod, once", in_quotes(name.text),
                        where);
        } else {
          where = pod.path;
          super_pod.servers.push_back(static_cast<std::uint32_t>(found->second));
        }
      }
      std::sort(super_pod.servers.begin(), super_pod.servers.end());
      table_.super_pods.push_back(std::move(super_pod));
    }
    for (std::size_t server = 0; server < pod_of.size() && json_.complete(); ++server) {
      if (!pod_of[server].empty() || server_of_.at(table_.servers[server].id) != server) continue;
      json_.problem(path_of(table_.servers[server].path, "server_id"), "{} is in no super-pod of super_pod_list",
                    in_quotes(table_.servers[server].id));
    }
    use_server_mode_without_numbers();
  }

  void use_server_mode_without_numbers() {
    const bool numbered = std::any_of(entries_.begin(), entries_.end(),
                                      [](const RankTableEntry& entry) { return entry.super_device.has_value(); });
    if (numbered || !checked_.problems.empty()) return;
    table_.notes.emplace_back("super_pod_list: not used, as no device has a super_device_id (AI server mode)");
    table_.super_pods.clear();
  }

  /// The older form: instances (containers) with their devices, in one group. Those of one server_id are one server.
  void read_group(const JsonObject& root) {
    const auto group_count = json_.number(root, "group_count", Need::required, 1, most_ranks);
    const auto groups = json_.objects(root, "group_list");
    require_equal(root, "group_count", group_count, groups.size(), "group_list has");
    if (groups.empty()) return;
    if (groups.size() > 1) {
      json_.problem("group_list", "has {} groups; accepted: one, that of all ranks", groups.size());
      return;
    }
    const JsonObject& group = groups.front();
    table_.group = json_.text(group, "group_name", Need::optional).text;
    const auto instance_count = json_.number(group, "instance_count", Need::required, 1, most_ranks);
    const auto instances = json_.objects(group, "instance_list");
    require_equal(group, "instance_count", instance_count, instances.size(), "instance_list has");
    std::map<std::string, std::string> pods;
    for (const JsonObject& instance : instances) {
      const JsonText pod = json_.text(instance, "pod_name", Need::optional);
      const auto [first, added] = pods.try_emplace(pod.text, instance.path);
      if (!pod.text.empty() && !added) {
        json_.problem(pod.path, "{} is the name of {} too; every instance needs its own", in_quotes(pod.text),
                      first->second);
      }
      read_instance(instance);
    }
    if (json_.complete()) number_ranks();
    const char* const key = group.value.contains("device_num") ? "device_num" : "device_count";
    const auto devices = json_.number(group, key, Need::required, 1, most_ranks);
    require_equal(group, key, devices, entries_.size(), "the instances have");
    if (group.value.contains("server_num")) {
      const auto servers = json_.number(group, "server_num", Need::required, 1, most_ranks);
      require_equal(group, "server_num", servers, table_.servers.size(), "different server_id of the instances:");
    }
  }

  void read_instance(const JsonObject& instance) {
    const JsonText id = read_server_id(instance);
    const auto [server, added] = server_of_.try_emplace(id.text, table_.servers.size());
    if (added) table_.servers.push_back({id.text, {}, instance.path});
    const auto devices = json_.objects(instance, "devices");
    const JsonText rank = json_.text(instance, "rank_id", Need::optional);
    if (rank.given && devices.size() > 1) {
      json_.problem(
          rank.path,
          "{} is the rank of one device, and the instance has {}; accepted: a rank_id in every device, or none in "
          "the table",
          in_quotes(rank.text), devices.size());
      json_.leave_out();
      return;
    }
    for (const JsonObject& device : devices) {
      read_device(device, instance.value.contains("rank_id") ? instance : device, server->second);
    }
  }

  /// Without ranks HCCL numbers the devices (topoinfo_ranktableStandard.cc): server by server in the order of the texts
  /// of their server_id, and by device_id within a server.
  void number_ranks() {
    if (unranked_.empty()) return;
    if (unranked_.size() < entries_.size()) {
      for (const std::size_t entry : unranked_) {
        json_.problem(entries_[entry].rank_path,
                      "the key is missing, but other devices have it: all of a table or none");
      }
      return;
    }
    const auto place = [&](std::size_t entry) {
      return std::pair(table_.servers[entries_[entry].server].id, entries_[entry].device);
    };
    std::ranges::sort(unranked_, {}, place);
    for (Rank rank = 0; rank < unranked_.size(); ++rank) entries_[unranked_[rank]].rank = rank;
    table_.notes.emplace_back("no rank_id: ranks are numbered as HCCL does, by the text of server_id and by device_id");
  }

  /// A count that was given must be the length of the lists, if they could be read.
  void require_equal(const JsonObject& object, const char* key, std::optional<std::uint64_t> count, std::size_t is,
                     std::string_view what) {
    if (!count.has_value() || !json_.complete() || *count == is) return;
    json_.problem(path_of(object.path, key), "\"{}\" is wrong: {} {}", *count, what, is);
  }

  CheckedRankTable& checked_;
  RankTable& table_;
  JsonReader json_;
  std::map<std::string, std::size_t> server_of_;  // server_id -> place
  std::vector<RankTableEntry> entries_;           // in the order of the file
  std::vector<std::size_t> unranked_;             // entries of the older form without a rank_id
  bool reserved_noted_ = false;
};

std::string contents_of(const std::string& path) {
  const InputFile file(path, "rank-table");
  if (file.size() > largest_file) {
    file.fail("{} bytes are too many for a rank table; accepted: up to {} MiB", file.size(), largest_file >> 20);
  }
  return file.text();
}

}  // namespace

CheckedRankTable check_rank_table(std::string_view json, const std::string& file) {
  CheckedRankTable checked;
  checked.table.file = file;
  const Json root = parse_json(json, file, checked.problems);
  if (root.is_object()) {
    TableReader(checked).read({root, ""});
  } else {
    checked.problems.push_back({"", "the file is not a JSON object with the keys of a rank table"});
  }
  return checked;
}

CheckedRankTable check_rank_table(const std::string& path) { return check_rank_table(contents_of(path), path); }

RankTable read_rank_table(const std::string& path) {
  CheckedRankTable checked = check_rank_table(path);
  require_none(checked.problems, path);
  return std::move(checked.table);
}

}  // namespace hcclsim::hccl
