#include "hccl/comm/rank_table_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "hccl/comm/groups.hpp"

namespace hcclsim::hccl {
namespace {

class Rules {
 public:
  Rules(const RankTable& table, std::span<const RankTableEntry> entries, JsonReader& json,
        std::vector<std::string>& notes)
      : table_(table), entries_(entries), json_(json), notes_(notes), pod_of_(table.servers.size()) {
    for (std::uint32_t pod = 0; pod < table_.super_pods.size(); ++pod) {
      for (const std::uint32_t server : table_.super_pods[pod].servers) pod_of_[server] = pod;
    }
  }

  void check() {
    check_ranks();
    check_interleaving();
    check_devices();
    note_groups_of_910a();
    check_addresses();
    check_backups();
    check_super_devices();
    check_super_pods();
  }

 private:
  /// Ranks are 0 … n − 1 for n devices, each once.
  void check_ranks() {
    std::vector<const RankTableEntry*> of_rank(entries_.size(), nullptr);
    for (const RankTableEntry& entry : entries_) {
      if (entry.rank.has_value() && *entry.rank < of_rank.size() && of_rank[*entry.rank] == nullptr) {
        of_rank[*entry.rank] = &entry;
      }
    }
    const auto gap = std::find(of_rank.begin(), of_rank.end(), nullptr);
    const std::string missing = gap == of_rank.end() ? "" : fmt::format("; rank {} is missing", gap - of_rank.begin());
    for (const RankTableEntry& entry : entries_) {
      if (!entry.rank.has_value()) continue;
      if (*entry.rank >= of_rank.size()) {
        json_.problem(entry.rank_path, "\"{}\" is not accepted: {} device{} the ranks 0 to {}{}", *entry.rank,
                      of_rank.size(), of_rank.size() == 1 ? " takes" : "s take", of_rank.size() - 1, missing);
      } else if (of_rank[*entry.rank] != &entry) {
        json_.problem(entry.rank_path, "\"{}\" is the rank of {} too{}", *entry.rank, of_rank[*entry.rank]->path,
                      missing);
      }
    }
  }

  /// The ranks of a server follow each other: a rule of A3 and advice on the others.
  void check_interleaving() {
    struct Ranks {
      Rank lowest = ~Rank{0};
      Rank highest = 0;
      Rank count = 0;
    };
    std::vector<Ranks> of_server(table_.servers.size());
    for (const RankTableEntry& entry : entries_) {
      if (!entry.rank.has_value()) return;
      Ranks& ranks = of_server[entry.server];
      ranks.lowest = std::min(ranks.lowest, *entry.rank);
      ranks.highest = std::max(ranks.highest, *entry.rank);
      ++ranks.count;
    }
    for (std::size_t server = 0; server < of_server.size(); ++server) {
      const Ranks& ranks = of_server[server];
      if (ranks.count == 0 || ranks.highest - ranks.lowest + 1 <= ranks.count) continue;
      const std::string message =
          fmt::format("the server has {} ranks between {} and {}, among them ranks of other servers", ranks.count,
                      ranks.lowest, ranks.highest);
      if (table_.version == RankTableVersion::v1_2) {
        json_.problem(table_.servers[server].path, "{}; accepted: ranks that follow each other in every server",
                      message);
      } else {
        notes_.push_back(
            fmt::format("{}: {}; HCCL advises ranks that follow each other", table_.servers[server].path, message));
        return;
      }
    }
  }

  /// A table does not tell the chip; version 1.2 is that of A3, to which the rule does not apply.
  void note_groups_of_910a() {
    if (table_.version == RankTableVersion::v1_2) return;
    DevicesOfServers devices;
    for (const RankTableEntry& entry : entries_) {
      if (entry.device.has_value()) devices[static_cast<std::uint32_t>(entry.server)].insert(*entry.device);
    }
    const std::optional<RefusedServer> refused = refused_server(devices);
    if (!refused.has_value()) return;
    notes_.push_back(fmt::format("{}: the server has {} devices; of servers of the 910A HCCL accepts {}",
                                 table_.servers[refused->server].path, refused->npus, group_rule_910a));
  }

  void check_devices() {
    std::map<std::pair<std::size_t, std::uint32_t>, const RankTableEntry*> devices;
    std::map<std::pair<std::size_t, std::uint32_t>, const RankTableEntry*> host_ports;
    for (const RankTableEntry& entry : entries_) {
      if (entry.device.has_value()) {
        const auto [first, added] = devices.try_emplace({entry.server, *entry.device}, &entry);
        if (!added) {
          json_.problem(path_of(entry.path, "device_id"),
                        "\"{}\" is the device of {} too; a server has every device once", *entry.device,
                        first->second->path);
        }
      }
      if (entry.host_port.has_value()) {
        const auto [first, added] = host_ports.try_emplace({entry.server, *entry.host_port}, &entry);
        if (!added) {
          json_.problem(path_of(entry.path, "host_port"),
                        "\"{}\" is the port of {} too; every device of a server needs its own", *entry.host_port,
                        first->second->path);
        }
      }
    }
  }

  /// Why every device needs an address; empty if none is needed.
  [[nodiscard]] std::string_view need_of_addresses() const {
    switch (table_.version) {
      case RankTableVersion::group_list:
        return "tables with a group_list give one for every device";
      case RankTableVersion::v1_0:
        return table_.servers.size() > 1 ? "several servers talk over it" : "";
      case RankTableVersion::v1_2:
        if (table_.super_pods.size() > 1) return "several super-pods talk over it";
        return table_.super_pods.empty() && table_.servers.size() > 1 ? "servers without super-pod talk over it" : "";
    }
    return "";
  }

  void check_addresses() {
    const std::string_view need = need_of_addresses();
    std::map<std::string_view, const RankTableEntry*> addresses;
    for (const RankTableEntry& entry : entries_) {
      if (entry.address.empty()) {
        // A wrong one has been reported.
        if (!need.empty() && !entry.device_ip.has_value()) {
          json_.problem(path_of(entry.path, "device_ip"), "the key is missing: {}", need);
        }
        continue;
      }
      const auto [first, added] = addresses.try_emplace(entry.address, &entry);
      if (!added) {
        json_.problem(path_of(entry.path, "device_ip"), "{} is the address of {} too; every device needs its own",
                      in_quotes(*entry.device_ip), first->second->path);
      }
    }
  }

  /// The backup of a die's port is that of the other die of its NPU, under another port number.
  void check_backups() {
    std::map<std::pair<std::size_t, std::uint32_t>, const RankTableEntry*> devices;
    for (const RankTableEntry& entry : entries_) {
      if (entry.device.has_value()) devices.try_emplace({entry.server, *entry.device}, &entry);
    }
    for (const RankTableEntry& entry : entries_) {
      if (!entry.device.has_value() || entry.backup_address.empty()) continue;
      const auto partner = devices.find({entry.server, *entry.device ^ 1U});
      if (partner == devices.end() || partner->second->address.empty()) continue;
      const RankTableEntry& other = *partner->second;
      if (entry.backup_address != other.address) {
        json_.problem(path_of(entry.path, "backup_device_ip"),
                      "not the address of the other die of its NPU, device {}; accepted: {}", *other.device,
                      in_quotes(*other.device_ip));
      } else if (entry.backup_port.has_value() && entry.backup_port == other.device_port) {
        json_.problem(path_of(entry.path, "backup_device_port"),
                      "\"{}\" is the device_port of {} too; as backup the address needs another port",
                      *entry.backup_port, other.path);
      }
    }
  }

  void check_super_devices() {
    if (table_.super_pods.empty()) return;
    const auto with = std::count_if(entries_.begin(), entries_.end(),
                                    [](const RankTableEntry& entry) { return entry.super_device.has_value(); });
    std::map<std::pair<std::uint32_t, std::uint32_t>, const RankTableEntry*> numbers;
    for (const RankTableEntry& entry : entries_) {
      if (!entry.super_device.has_value()) {
        if (with > 0) {
          json_.problem(path_of(entry.path, "super_device_id"),
                        "the key is missing or wrong, but other devices have it: all of a table or none");
        }
        continue;
      }
      if (!pod_of_[entry.server].has_value()) continue;
      const auto [first, added] = numbers.try_emplace({*pod_of_[entry.server], *entry.super_device}, &entry);
      if (!added) {
        json_.problem(path_of(entry.path, "super_device_id"),
                      "\"{}\" is that of {} too; a super-pod has every number once", *entry.super_device,
                      first->second->path);
      }
    }
  }

  /// The servers of a super-pod stand together in the table.
  void check_super_pods() {
    for (std::size_t pod = 0; pod < table_.super_pods.size(); ++pod) {
      const std::vector<std::uint32_t>& servers = table_.super_pods[pod].servers;  // ascending
      if (servers.empty() || servers.back() - servers.front() + 1 == servers.size()) continue;
      json_.problem(
          path_of("super_pod_list", pod),
          "servers of other super-pods stand between its own in server_list; accepted: one super-pod after the "
          "other");
    }
  }

  const RankTable& table_;
  std::span<const RankTableEntry> entries_;
  JsonReader& json_;
  std::vector<std::string>& notes_;
  std::vector<std::optional<std::uint32_t>> pod_of_;  // of each server
};

}  // namespace

void check_rules(const RankTable& table, std::span<const RankTableEntry> entries, JsonReader& json,
                 std::vector<std::string>& notes) {
  Rules(table, entries, json, notes).check();
}

}  // namespace hcclsim::hccl
