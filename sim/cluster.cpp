#include "sim/cluster.hpp"

#include <simgrid/Exception.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.hpp"
#include "sim/platform/check.hpp"
#include "sim/simgrid_engine.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::array<std::string_view, 6> kind_names{"hccs", "pcie", "sio", "ub", "roce", "other"};

const simgrid::s4u::NetZone& root_zone() { return *engine().get_netzone_root(); }

/// Beside a pair's key: the pair of their ports.
constexpr std::uint64_t port_bit = std::uint64_t{1} << 63U;

std::uint64_t pair_key(Rank source, Rank destination) { return std::uint64_t{source} << 32 | destination; }

constexpr const char* port_property = "roce";

std::string port_host_of(const std::string& npu) { return npu + " RoCE"; }

}  // namespace

std::string_view name_of(LinkKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

Cluster::Cluster(std::string path, std::span<const PlatformEdit> edits)
    : path_(std::move(path)), edits_(edits.begin(), edits.end()) {
  require_valid_platform(path_);
  if (engine().get_netzone_root() != nullptr) internal_error("{}: this process has loaded a platform already", path_);
  std::optional<EditedPlatform> edited;
  if (!edits.empty()) edited.emplace(path_, edits);
  try {
    engine().load_platform(edited.has_value() ? edited->path() : path_);
    make_port_hosts();
    // Gives routers of star zones their empty way to the centre, without which routes through them are not found.
    engine().seal_platform();
  } catch (const simgrid::Exception& error) {
    bad_input("platform", "{}: {}", path_, error.what());
  } catch (const std::invalid_argument& error) {
    bad_input("platform", "{}: {}", path_, error.what());
  }
  read_links();
  adjustments_.resize(links_.size());
  read_npus();
  find_port_hosts();
  find_bypass_zones();
}

void Cluster::renumber(std::span<const Rank> first) {
  if (!routes_.empty()) internal_error("{}: NPUs are renumbered after routes were asked for", path_);
  std::vector<Rank> order(first.begin(), first.end());
  std::vector<bool> named(size(), false);
  for (const Rank npu : first) {
    if (npu >= size() || named[npu]) internal_error("{}: NPU {} is no NPU or numbered twice", path_, npu);
    named[npu] = true;
  }
  for (Rank npu = 0; npu < size(); ++npu) {
    if (!named[npu]) order.push_back(npu);
  }
  const auto reorder = [&order](auto& items) {
    auto before = std::exchange(items, {});
    for (const Rank npu : order) items.push_back(std::move(before[npu]));
  };
  reorder(npus_);
  reorder(hosts_);
  reorder(port_hosts_);
}

std::optional<std::string> Cluster::property(std::string_view key) const {
  const char* const value = root_zone().get_property(std::string(key));
  if (value == nullptr) return std::nullopt;
  return value;
}

void Cluster::forget_routes() {
  routes_.clear();
  route_index_.clear();
}

void Cluster::use(const std::map<LinkKind, LinkValues>& values) {
  values_ = values;
  forget_routes();
}

void Cluster::fold(LinkFold fold) {
  fold_ = std::move(fold);
  forget_routes();
}

void Cluster::unfold() {
  fold_.reset();
  forget_routes();
}

BytesPerSecond Cluster::capacity(LinkId link) const {
  return fold_.has_value() ? own_capacity(link) * fold_->share[link] : own_capacity(link);
}

void Cluster::adjust(const std::map<LinkKind, LinkAdjustment>& adjustments) {
  for (LinkId link = 0; link < links_.size(); ++link) {
    const auto found = adjustments.find(links_[link].kind);
    adjustments_[link] = found == adjustments.end() ? LinkAdjustment() : found->second;
  }
  forget_routes();
}

BytesPerSecond Cluster::own_capacity(LinkId link) const {
  const Link& values = links_[link];
  const auto chosen = values_.find(values.kind);
  const LinkValues which = chosen == values_.end() ? LinkValues::used : chosen->second;
  const BytesPerSecond bandwidth = which == LinkValues::low    ? values.low
                                   : which == LinkValues::high ? values.high
                                                               : values.bandwidth;
  return bandwidth * adjustments_[link].bandwidth;
}

const Route& Cluster::route(Rank source, Rank destination) {
  const std::uint64_t key = pair_key(source, destination);
  if (const std::uint32_t found = route_index_.find(key); found != FlatMap::none) return routes_[found];
  if (source == destination || source >= size() || destination >= size()) {
    internal_error("no route from rank {} to rank {} of {}", source, destination, size());
  }
  routes_.push_back(find_route(source, destination));
  route_index_.insert(key, static_cast<std::uint32_t>(routes_.size() - 1));
  return routes_.back();
}

std::optional<LinkId> Cluster::id_of(const simgrid::s4u::Link* link) const {
  const auto found = std::lower_bound(link_ids_.begin(), link_ids_.end(), std::pair(link, LinkId{0}));
  if (found == link_ids_.end() || found->first != link) return std::nullopt;
  return found->second;
}

Route Cluster::find_route(Rank source, Rank destination) {
  if (npus_[source].super_pod != npus_[destination].super_pod) return find_route(source, destination, true);
  const Route route = find_route(source, destination, false);
  const bool roce = roce_between_servers_ && npus_[source].server != npus_[destination].server;
  return roce && route.transport != Transport::rdma ? find_route(source, destination, true) : route;
}

Route Cluster::find_route(Rank source, Rank destination, bool between_ports) {
  Route route;
  route.source = source;
  route.destination = destination;
  route.between_ports = between_ports;
  declare_bypass(route);
  std::vector<simgrid::s4u::Link*> way;
  try {
    simgrid_source(route).route_to(&simgrid_destination(route), way, nullptr);
  } catch (const std::exception&) {
    way.clear();  // SimGrid has no exception for it: a gateway without a route, for example, is an std::out_of_range
  }
  if (way.empty()) {
    bad_input("platform", "{}: no route from NPU '{}' to NPU '{}'", path_, npus_[source].name, npus_[destination].name);
  }
  std::vector<LinkId> links;
  for (const simgrid::s4u::Link* const part : way) {
    const std::optional<LinkId> known = id_of(part);
    if (!known) internal_error("link '{}' is unknown", part->get_name());
    links.push_back(*known);
  }
  Route found = route_over(std::move(links), source, destination);
  found.between_ports = between_ports;
  return found;
}

Route Cluster::route_over(std::vector<LinkId> way, Rank source, Rank destination) const {
  Route route{.source = source, .destination = destination, .links = std::move(way)};
  double least = std::numeric_limits<double>::infinity();
  double slowest_write = least;
  double slowest_read = least;
  for (const LinkId id : route.links) {
    const Link& link = links_[id];
    route.latency += link.latency + adjustments_[id].latency;
    if (link.kind == LinkKind::roce) route.transport = Transport::rdma;
    // At an end of the link's range, the speed that a task reaches scales with the capacity.
    const double scale = own_capacity(id) / link.bandwidth;
    slowest_write = std::min(slowest_write, link.write * scale);
    slowest_read = std::min(slowest_read, link.read * scale);
    if (own_capacity(id) < least) {
      least = own_capacity(id);
      route.slowest = id;
    }
  }
  route.write_factor = least / slowest_write;
  route.read_factor = least / slowest_read;
  for (LinkId& link : route.links) link = folded(link);
  route.slowest = folded(route.slowest);
  return route;
}

void Cluster::declare_bypass(const Route& route) {
  const Rank source = route.source;
  const Rank destination = route.destination;
  const std::uint64_t key = pair_key(source, destination) | (route.between_ports ? port_bit : 0);
  if (declared_.find(key) != FlatMap::none) return;
  const auto way = route.between_ports ? way_between_ports(source, destination) : bypass(source, destination);
  if (!way) return;
  simgrid::s4u::Host& from = simgrid_source(route);
  simgrid::s4u::Host& to = simgrid_destination(route);
  auto* const zone = from.get_englobing_zone();
  if (zone != to.get_englobing_zone()) {
    bad_input("platform", "{}: property route:{}:{} joins NPUs of different zones; only NPUs of one zone can be joined",
              path_, npus_[source].name, npus_[destination].name);
  }
  std::vector<simgrid::s4u::LinkInRoute> links;
  for (const LinkId link : *way) links.emplace_back(simgrid_links_[link]);
  zone->add_bypass_route(from.get_netpoint(), to.get_netpoint(), nullptr, nullptr, links);
  declared_.insert(key, 1);
}

// RoCE between servers that the file connects in another way. SimGrid has one route between two hosts, and connects
// directly only hosts of one zone. So every NPU with a RoCE port has a second host; all these hosts are in one zone,
// and transfers over RoCE go between them.

void Cluster::make_port_hosts() {
  simgrid::s4u::NetZone* ports = nullptr;
  for (const simgrid::s4u::Host* const host : engine().get_all_hosts()) {
    if (host->get_property(port_property) == nullptr) continue;
    if (ports == nullptr) {
      ports = simgrid::s4u::create_empty_zone("RoCE ports");
      ports->set_parent(engine().get_netzone_root());
    }
    ports->create_host(port_host_of(host->get_name()), 1);  // transfers alone use it: any speed will do
  }
}

void Cluster::find_port_hosts() {
  for (const Npu& npu : npus_) port_hosts_.push_back(engine().host_by_name_or_null(port_host_of(npu.name)));
}

void Cluster::use_roce_between_servers() {
  if (!routes_.empty()) internal_error("{}: RoCE is chosen after routes were asked for", path_);
  roce_between_servers_ = true;
}

std::vector<LinkId> Cluster::way_between_ports(Rank source, Rank destination) const {
  const auto port = [&](Rank rank, const char* direction) {
    const auto name = npus_[rank].properties.find(port_property);
    if (port_hosts_[rank] == nullptr || name == npus_[rank].properties.end()) {
      bad_input(
          "platform",
          "{}: NPU '{}' has no property {}, the link that is its RoCE port, so that it cannot reach other servers "
          "over RoCE; 'hcclsim platform generate' writes it for servers that the unified bus joins",
          path_, npus_[rank].name, port_property);
    }
    const std::optional<LinkId> link = id_of(engine().link_by_name_or_null(name->second + direction));
    if (!link) internal_error("{}: port '{}' passed the check of the platform", path_, name->second);
    return *link;
  };
  return {port(source, "_UP"), port(destination, "_DOWN")};
}

}  // namespace hcclsim::sim
