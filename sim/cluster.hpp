#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// The cluster as a SimGrid platform file describes it: NPUs in rank order (by server, then device), the links between
/// them with their sources' low, used and high speeds, and the routes. docs/formats.md lists the properties.
namespace hcclsim::sim {

/// What a link is made of; property `kind` of the link. The kind decides which engine drives a transfer (see Transport)
/// and which zone properties `link.<kind>.*` apply.
enum class LinkKind : std::uint8_t { hccs, pcie, sio, ub, roce, other };

[[nodiscard]] std::string_view name_of(LinkKind kind);

/// Direction of a one-sided transfer as the device sees it: a task that writes to or reads from its peer's memory.
enum class Access : std::uint8_t { write, read };

/// Which value of each link is used: its used value, or the end of its range (docs: platforms/README.md).
enum class LinkValues : std::uint8_t { used, low, high };

using LinkId = std::uint32_t;

struct Link {
  std::string name;
  LinkKind kind = LinkKind::other;
  bool shared = true;            ///< false: SimGrid's FATPIPE, every flow gets the whole bandwidth
  BytesPerSecond bandwidth = 0;  ///< attribute of the XML, the capacity that flows share
  BytesPerSecond nominal = 0;    ///< as advertised, one direction
  BytesPerSecond low = 0;        ///< lower end of the published range
  BytesPerSecond high = 0;       ///< upper end
  BytesPerSecond write = 0;      ///< what one write task reaches; = bandwidth if not given
  BytesPerSecond read = 0;       ///< what one read task reaches; = bandwidth if not given
  Seconds latency = 0;           ///< attribute of the XML
};

/// The engine that moves the bytes: SDMA inside a server and over the unified bus, RDMA wherever RoCE is on the way.
enum class Transport : std::uint8_t { sdma, rdma };

/// The way from one NPU to another, resolved once.
struct Route {
  std::vector<LinkId> links;
  Seconds latency = 0;  ///< sum over the links
  Transport transport = Transport::sdma;
  /// Factor on the bytes of a write or read so that an idle route takes n / B with B the slowest task speed on the way,
  /// while flows of both kinds share the links' capacity: min(capacity) / min(task speed).
  double write_factor = 1;
  double read_factor = 1;
  LinkId slowest = 0;  ///< the link with the least capacity
};

struct Npu {
  std::string name;  ///< host name in the XML
  std::string soc;   ///< property `npu`, such as "Ascend910A"
  std::uint32_t server = 0;
  std::uint32_t device = 0;                       ///< number within the server
  std::map<std::string, std::string> properties;  ///< all properties of the host
};

class Cluster {
 public:
  /// Loads a platform file into SimGrid. Throws Error(bad_input, "platform") with file and line for what the check of
  /// sim/platform_check.hpp finds; what only SimGrid finds may abort, so call this in a child (base/child_process.hpp).
  explicit Cluster(const std::string& path);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] Rank size() const;
  [[nodiscard]] const Npu& npu(Rank rank) const;
  /// Number of servers; server numbers are 0 … servers() − 1 in the order of the file's `server` properties.
  [[nodiscard]] std::uint32_t servers() const;
  [[nodiscard]] std::span<const Link> links() const;
  /// A property of the outermost zone.
  [[nodiscard]] std::optional<std::string> property(std::string_view key) const;

  /// Chooses the links' values for the simulations to come; the default is `used`.
  void use(LinkValues values);
  /// Capacity of a link under the values in use.
  [[nodiscard]] BytesPerSecond capacity(LinkId link) const;

  /// The route from one NPU to another (cached). Throws Error(bad_input) naming the NPUs if there is none.
  [[nodiscard]] const Route& route(Rank source, Rank destination);

  class Impl;
  [[nodiscard]] Impl& impl() { return *impl_; }  // for the networks of this folder

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace hcclsim::sim
