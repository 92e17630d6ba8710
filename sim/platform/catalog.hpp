#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"

/// What the platform files are made from: the servers that carry Ascend NPUs, the speeds of their links and the costs
/// of their tasks. This is the one place of these figures; platforms/README.md gives the source of each and a test
/// holds the two together.
namespace hcclsim::sim {

/// Speeds of a kind of link in GB/s, one direction. `used` is what flows share; `read` and `write` are what one task
/// reaches and are 0 where no separate figures are published.
struct LinkSpeed {
  std::string_view kind;  ///< property `kind` of the link
  double used = 0;
  double nominal = 0;
  double low = 0;
  double high = 0;
  double read = 0;
  double write = 0;
  /// Where `used` comes from, in a few words; those that begin with "measured" were measured by the vendor.
  std::string_view source;
};

/// How the NPUs of a server reach each other.
enum class ServerTopology : std::uint8_t {
  hccs_groups,  ///< full meshes of four over HCCS; PCIe between the meshes, i ↔ i + 4
  hccs_mesh,    ///< one full mesh over HCCS
  ub_plane,     ///< pairs of dies over SIO, every die with a port to a switch of the unified bus
};

/// A property of the outermost zone that prices a task of HCCL, or what its host does in op mode; see
/// platforms/README.md, "Tasks" and "Host in op mode".
struct TaskCost {
  std::string_view property;
  std::string_view value;
  std::string_view meaning;
};

struct ServerModel {
  std::string_view title;  ///< product name
  ServerTopology topology = ServerTopology::hccs_mesh;
  std::uint32_t npus = 0;         ///< NPUs (A3: dies) of a full server
  std::uint32_t max_servers = 0;  ///< 0: no limit of its own
  std::span<const LinkSpeed> speeds;
  LinkSpeed host;    ///< between an NPU and the CPUs of its server
  LinkSpeed level2;  ///< UB between the nodes of a super-pod; used = 0 where there is none
  double level2_latency_us = 0;
  std::span<const TaskCost> issue{};  ///< what issuing a collective costs the host in op mode

  /// Speed of a kind of link of this server; internal_error if the server has none of that kind.
  [[nodiscard]] const LinkSpeed& speed(std::string_view kind) const;
};

/// An NPU type as the vendor's platform configuration files name it.
struct SocEntry {
  std::string_view name;  ///< "Ascend910A"
  const ServerModel* server = nullptr;
  std::uint32_t cube_cores = 0;
  std::uint32_t vector_cores = 0;
  double clock_ghz = 0;
  std::uint64_t hbm_gib = 0;
  std::string_view hbm_bandwidth;  ///< as in a platform file
  std::uint64_t l2_mib = 0;
};

/// Limits of the runtime per device.
struct RuntimeLimits {
  std::uint32_t streams, events, notifies;
};
[[nodiscard]] RuntimeLimits runtime_limits(const SocEntry& soc);

/// A property that describes an NPU: KEY of a host, or npu.KEY of the outermost zone for all hosts without it.
struct NpuProperty {
  enum class Form : std::uint8_t { count, number, bytes, bandwidth };
  std::string_view key;
  Form form = Form::count;
  double lowest = 0;  ///< accepted counts and numbers; bytes and bandwidths must be above 0
  double highest = 0;
};

/// All of them, in the order in which they are written.
[[nodiscard]] std::span<const NpuProperty> npu_properties();

/// The properties `npu.KEY` of the outermost zone of a file with NPUs of this type: key and value.
[[nodiscard]] std::vector<std::pair<std::string_view, std::string>> npu_values(const SocEntry& soc);

/// All NPU types, each with its server.
[[nodiscard]] std::span<const SocEntry> soc_entries();

/// The type that the property `npu` of a host names; nullptr if it is not known. Case and the prefix "Ascend" do not
/// matter. "910B" alone is read as Ascend910B2: ambiguous_soc() says so.
[[nodiscard]] const SocEntry* soc_of_property(std::string_view value);

/// A note for the user if the name once meant another chip; empty for all other names.
[[nodiscard]] std::string ambiguous_soc(std::string_view value);

/// Speed of the link between such an NPU and the CPUs of its server, one direction; internal_error for other names.
[[nodiscard]] BytesPerSecond host_bandwidth(std::string_view soc);

/// Finds "Ascend910A", "910A", "Ascend910_9391" or "9391". Throws Error(bad_input, "soc") that lists the names, and
/// says which ones "910B" and "A3" can mean.
[[nodiscard]] const SocEntry& find_soc_entry(std::string_view name);

/// The costs of tasks, the same in all files.
[[nodiscard]] std::span<const TaskCost> task_costs();

/// The collectives that may have a base of their own on the host: property op.base.NAME_us.
[[nodiscard]] std::span<const std::string_view> issued_collectives();

/// All properties of the outermost zone that are times in microseconds.
[[nodiscard]] std::vector<std::string> time_properties();

/// The hosts' CPUs: sockets × cores, and clock. They run no kernels here.
inline constexpr std::uint32_t host_cores = 4 * 48;
inline constexpr std::string_view host_cpu = "4 x Kunpeng 920";
inline constexpr double host_clock_ghz = 2.6;

}  // namespace hcclsim::sim
