#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/flat_map.hpp"
#include "sim/platform/edit.hpp"
#include "sim/source/platform_source.hpp"

/// The cluster as a SimGrid platform file describes it: NPUs in rank order (by server, then device, unless they are
/// renumbered), the links between them with their sources' low, used and high speeds, and the routes. docs/formats.md
/// lists the properties.
namespace hcclsim::sim {

class Fabric;
struct FurtherWays;
struct LinkBundles;

/// What a link is made of; property `kind` of the link. The kind decides which engine drives a transfer (see Transport)
/// and which zone properties `link.<kind>.*` apply.
enum class LinkKind : std::uint8_t { hccs, pcie, sio, ub, roce, other };
inline constexpr std::size_t link_kinds = 6;

[[nodiscard]] std::string_view name_of(LinkKind kind);

/// Direction of a one-sided transfer as the device sees it: a task that writes to or reads from its peer's memory.
enum class Access : std::uint8_t { write, read };

/// Which value of each link is used: its used value, or the end of its range (docs: platforms/README.md).
enum class LinkValues : std::uint8_t { used, low, high };

/// Changes to all links of one kind.
struct LinkAdjustment {
  double bandwidth = 1;  ///< factor on bandwidth, read and write speed
  Seconds latency = 0;   ///< added
};

/// A speed that is not given for the link itself comes from the outermost zone's properties for its kind, or else is
/// the bandwidth. A SPLITDUPLEX link of the file becomes two of these, NAME_UP and NAME_DOWN.
struct Link {
  std::string name;
  LinkKind kind = LinkKind::other;
  bool shared = true;            ///< false: SimGrid's FATPIPE, every flow gets the whole bandwidth
  BytesPerSecond bandwidth = 0;  ///< attribute of the XML, the capacity that flows share
  BytesPerSecond nominal = 0;    ///< as advertised, one direction
  BytesPerSecond low = 0;        ///< lower end of the published range
  BytesPerSecond high = 0;       ///< upper end
  BytesPerSecond write = 0;      ///< what one write task reaches
  BytesPerSecond read = 0;       ///< what one read task reaches
  Seconds latency = 0;           ///< attribute of the XML
};

/// The engine that moves the bytes: SDMA inside a server and over the unified bus, RDMA wherever RoCE is on the way.
enum class Transport : std::uint8_t { sdma, rdma };

/// The way from one NPU to another, resolved once. NPUs of different super-pods, where the file names these, reach each
/// other from RoCE port to RoCE port (property `roce` of their hosts).
struct Route {
  Rank source = 0;
  Rank destination = 0;
  HostId from = 0;  ///< of the source, whatever its rank
  HostId to = 0;
  std::vector<LinkId> links;
  Seconds latency = 0;  ///< sum over the links
  /// Factor on the bytes of a write or read so that an idle route takes n / B with B the slowest task speed on the way,
  /// while flows of both kinds share the links' capacity: min(capacity) / min(task speed).
  double write_factor = 1;
  double read_factor = 1;
  LinkId slowest = 0;  ///< the link with the least capacity
  Transport transport = Transport::sdma;
  bool between_ports = false;            ///< from RoCE port to RoCE port, not on the way that the file has
  bool by_property = false;              ///< on the way that a property `route:FROM:TO` gives
  bool by_fabric = false;                ///< chosen among ways of a fabric (Routing)
  const FurtherWays* further = nullptr;  ///< of the connection's other queue pairs; null: it has one
};

/// What a connection of several queue pairs has beside the way of the first one. The ways differ in their links alone.
struct FurtherWays {
  std::vector<Route> ways;
  Bytes least_bytes = 1;  ///< that a queue pair carries of a transfer
};

/// The number of queue pairs that a transfer of so many bytes takes.
[[nodiscard]] inline std::uint32_t queue_pairs_of(const Route& route, Bytes bytes) {
  if (route.further == nullptr) return 1;
  return static_cast<std::uint32_t>(
      std::clamp<Bytes>(bytes / route.further->least_bytes, 1, route.further->ways.size() + 1));
}

/// Calls visit(way, share) for the way of each queue pair that such a transfer takes, and its share of the bytes.
template <typename Visit>
void visit_ways(const Route& route, Bytes bytes, const Visit& visit) {
  const std::uint32_t pairs = queue_pairs_of(route, bytes);
  visit(route, 1.0 / pairs);
  for (std::uint32_t pair = 1; pair < pairs; ++pair) visit(route.further->ways[pair - 1], 1.0 / pairs);
}

struct Npu {
  std::string name;  ///< host name in the XML
  std::string soc;   ///< property `npu`, such as "Ascend910A"
  std::uint32_t server = 0;
  std::uint32_t device = 0;                       ///< number within the server
  std::uint32_t super_pod = 0;                    ///< property `super_pod`; 0 for all NPUs if the file has none
  std::map<std::string, std::string> properties;  ///< all properties of the host
  HostId host = 0;                                ///< in the platform file
};

/// A host with property `cpu`.
struct Cpu {
  std::string name;
  HostId host = 0;
};

/// Groups of links with the same load, in each of which one link represents the others.
struct LinkFold {
  std::vector<LinkId> representative;  ///< of each link
  std::vector<double> share;           ///< of its own capacity that each representative keeps
  std::vector<std::uint32_t> flows;    ///< that each link carries for one that is simulated, at the same dates

  /// Adds the groups of links that carry something of another job. Shared links of several jobs must be in no group; of
  /// a link that is not shared either group will do, as all of both are equally fast.
  void add(const LinkFold& of_other_job);
};

class Cluster {
 public:
  /// Loads a platform file: by ourselves where sim/source/plain_source.hpp reads all that it holds, else into SimGrid,
  /// which holds one per process. Throws Error(bad_input, "platform") with file and line for what the check of
  /// sim/platform/check.hpp finds. Mistakes that only SimGrid finds may abort the process, so call this in a child
  /// (base/child_process.hpp). With edits, the platform is the file as changed by them (sim/platform/edit.hpp); path()
  /// stays the path of the file. The routing is that of the file's property fabric.routing unless another one is given.
  explicit Cluster(std::string path, std::span<const PlatformEdit> edits = {},
                   const std::optional<Routing>& routing = std::nullopt);
  /// The platform of a file that we read by ourselves, of which a process may load any number; null for a file that
  /// SimGrid must load.
  [[nodiscard]] static std::unique_ptr<Cluster> without_simgrid(const std::string& path,
                                                                std::span<const PlatformEdit> edits = {},
                                                                const std::optional<Routing>& routing = std::nullopt);
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster();

  /// The same loaded platform for another job on it, to be renumbered by itself: jobs share the links and their
  /// numbers, and a network of any of them carries what goes over the routes of all; folded ones are so by the same
  /// LinkFold. To be called before any route is asked for.
  [[nodiscard]] Cluster of_another_job() const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::span<const PlatformEdit> edits() const { return edits_; }
  [[nodiscard]] Rank size() const { return static_cast<Rank>(npus_.size()); }
  [[nodiscard]] const Npu& npu(Rank rank) const { return npus_[rank]; }
  /// Renumbers the NPUs: the NPU that is now number first[r] becomes rank r; NPUs that are not listed follow in their
  /// old order. To be called before any route is asked for.
  void renumber(std::span<const Rank> first);
  /// From now on NPUs of different servers reach each other over RoCE. Where the file connects them in another way,
  /// they go from port to port (property `roce` of their hosts); asking for a route between NPUs without ports then
  /// throws Error(bad_input, "platform"). To be called before any route is asked for.
  void use_roce_between_servers();
  /// For networks that are made later: how fabrics of the file choose among ways that cost the same. Routes found
  /// before become invalid. Throws Error(bad_input, "routing") for a choice where the file has no fabric
  /// (sim/fabric/graph.hpp) with several ways, and where ideal routing has no meaning.
  void use_routing(const Routing& routing);
  [[nodiscard]] const Routing& routing() const { return routing_; }
  /// With ecmp, connections have so many queue pairs, each with a way of its own. To be called before any route is
  /// asked for.
  void use_queue_pairs(const QueuePairs& pairs);
  /// Whether a transfer can go several ways at once.
  [[nodiscard]] bool splits_transfers() const { return routing_.kind == RoutingKind::ecmp && queue_pairs_.count > 1; }

  /// Number of servers; server numbers are 0 … servers() − 1 in the order of the file's `server` properties.
  [[nodiscard]] std::uint32_t servers() const { return servers_; }
  [[nodiscard]] std::span<const Link> links() const { return links_; }
  /// The CPUs in the order of the file.
  [[nodiscard]] std::span<const Cpu> cpus() const { return cpus_; }
  /// A property of the outermost zone.
  [[nodiscard]] std::optional<std::string> property(std::string_view key) const;

  /// Chooses the values of the links of these kinds, for networks that are made later; all others have those that are
  /// used. Routes found before become invalid.
  void use(const std::map<LinkKind, LinkValues>& values);
  /// For networks that are made later: changes the speeds (used values and both ends of their ranges) and latencies of
  /// the links of these kinds; links of all other kinds get the values of the file. Routes found before become invalid.
  void adjust(const std::map<LinkKind, LinkAdjustment>& adjustments);
  /// After fold(), routes use representatives in place of their links, each with its share of its capacity; after
  /// unfold(), routes use their own links again. Routes found before become invalid. For the network `fluid`.
  void fold(LinkFold fold);
  void unfold();
  /// Null: not folded.
  [[nodiscard]] const LinkFold* link_fold() const { return fold_.has_value() ? &*fold_ : nullptr; }
  /// Capacity of a link under the values in use, folded if it is.
  [[nodiscard]] BytesPerSecond capacity(LinkId link) const { return capacities_[link]; }

  /// The route from one NPU to another, kept once found: the reference is good until use(), adjust(), use_routing(),
  /// fold() or unfold() is called. Throws Error(bad_input, "platform") naming the NPUs if there is none.
  [[nodiscard]] const Route& route(Rank source, Rank destination);
  /// Adds what follows from the links of a route.
  void complete(Route& route) const;

  /// The links from one host to another, as the zones of the file lead; empty if there is no way.
  [[nodiscard]] std::vector<LinkId> way(HostId from, HostId to) { return source_->way(from, to); }

 private:
  struct File;
  Cluster(File&& file, std::span<const PlatformEdit> edits, const std::optional<Routing>& routing);
  Cluster(const Cluster&) = default;
  void read_links();
  void read_hosts();
  void read_route_properties();
  [[nodiscard]] std::optional<LinkId> id_of(std::string_view link) const;
  [[nodiscard]] std::vector<LinkId> parse_way(const std::string& key, std::string_view text) const;
  [[nodiscard]] LinkId opposite(LinkId link) const;
  [[nodiscard]] BytesPerSecond own_capacity(LinkId link) const;
  /// After a change of values: forgets the routes.
  void changed();
  [[nodiscard]] Route find_route(Rank source, Rank destination);
  [[nodiscard]] Route find_route(Rank source, Rank destination, bool between_ports);
  [[nodiscard]] std::vector<LinkId> way_of(Route& route);
  [[nodiscard]] std::vector<LinkId> fabric_way(Rank source, Rank destination, std::uint32_t queue_pair) const;
  void add_queue_pairs(Route& route);
  [[nodiscard]] std::vector<LinkId> way_between_ports(Rank source, Rank destination) const;

  std::string path_;
  std::vector<PlatformEdit> edits_;
  std::shared_ptr<PlatformSource> source_;  // of all jobs
  std::map<std::string, std::string> properties_;
  std::vector<Npu> npus_;
  std::vector<Cpu> cpus_;
  bool roce_between_servers_ = false;
  std::uint32_t servers_ = 0;
  std::vector<Link> links_;
  std::vector<LinkId> by_name_;                                    // all links, sorted by name
  std::map<std::pair<HostId, HostId>, std::vector<LinkId>> ways_;  // that properties `route:…` give
  std::map<LinkKind, LinkValues> values_;                          // used: those of kinds without an entry
  std::vector<LinkAdjustment> adjustments_;                        // by LinkId
  std::optional<LinkFold> fold_;
  Routing routing_;
  QueuePairs queue_pairs_;
  std::shared_ptr<Fabric> fabric_;           // null: nothing is chosen; of all jobs
  std::vector<std::uint32_t> fabric_hosts_;  // by rank: the NPU as a vertex of fabric_
  std::shared_ptr<LinkBundles> bundles_;     // of ideal routing
  std::vector<BytesPerSecond> capacities_;   // by LinkId, under all of these
  std::deque<Route> routes_;
  std::deque<FurtherWays> further_ways_;  // of routes_
  FlatMap route_index_;                   // source << 32 | destination -> index in routes_
};

}  // namespace hcclsim::sim
