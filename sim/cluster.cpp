#include "sim/cluster.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/platform/document.hpp"
#include "sim/simgrid_module.hpp"
#include "sim/source/plain_source.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::array<std::string_view, 6> kind_names{"hccs", "pcie", "sio", "ub", "roce", "other"};

std::uint64_t pair_key(Rank source, Rank destination) { return std::uint64_t{source} << 32 | destination; }

}  // namespace

std::string_view name_of(LinkKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

/// A platform file that passed its check.
struct Cluster::File {
  File(std::string of, std::span<const PlatformEdit> edits) : path(std::move(of)) {
    document = valid_platform(path, make_npus(edits) ? NpusOfFile::are_to_come : NpusOfFile::are_there);
    if (!edits.empty()) {
      edited.emplace(path, edits);
      document = valid_platform(edited->path());
    }
    source = make_plain_source(*document);
    if (source == nullptr) document.reset();
  }

  std::string path;
  std::unique_ptr<PlatformDocument> document;
  std::optional<EditedPlatform> edited;
  std::unique_ptr<PlatformSource> source;  // null: SimGrid must read the file
};

Cluster::Cluster(std::string path, std::span<const PlatformEdit> edits, const std::optional<Routing>& routing)
    : Cluster(File(std::move(path), edits), edits, routing) {}

std::unique_ptr<Cluster> Cluster::without_simgrid(const std::string& path, std::span<const PlatformEdit> edits,
                                                  const std::optional<Routing>& routing) {
  File file(path, edits);
  if (file.source == nullptr) return nullptr;
  return std::unique_ptr<Cluster>(new Cluster(std::move(file), edits, routing));
}

Cluster::Cluster(File&& file, std::span<const PlatformEdit> edits, const std::optional<Routing>& routing)
    : path_(std::move(file.path)), edits_(edits.begin(), edits.end()), source_(std::move(file.source)) {
  if (source_ == nullptr) source_ = simgrid_module().load(*this);
  properties_ = source_->properties();
  read_links();
  adjustments_.resize(links_.size());
  read_hosts();
  read_route_properties();
  use_routing(routing.value_or(parse_routing(property("fabric.routing").value_or("file"))));
}

Cluster::~Cluster() = default;

Cluster Cluster::of_another_job() const {
  if (!routes_.empty()) internal_error("{}: another job comes after routes were asked for", path_);
  return *this;
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
  if (fabric_ != nullptr) reorder(fabric_hosts_);
}

std::optional<std::string> Cluster::property(std::string_view key) const {
  const auto found = properties_.find(std::string(key));
  if (found == properties_.end()) return std::nullopt;
  return found->second;
}

void Cluster::changed() {
  routes_.clear();
  further_ways_.clear();
  route_index_.clear();
  capacities_.resize(links_.size());
  for (LinkId link = 0; link < links_.size(); ++link) {
    capacities_[link] = fold_.has_value() ? own_capacity(link) * fold_->share[link] : own_capacity(link);
  }
}

void Cluster::use(const std::map<LinkKind, LinkValues>& values) {
  values_ = values;
  changed();
}

void LinkFold::add(const LinkFold& of_other_job) {
  for (LinkId link = 0; link < representative.size(); ++link) {
    const LinkId other = of_other_job.representative[link];
    if (other == link && of_other_job.flows[link] == 1) continue;
    representative[link] = other;
    share[link] = of_other_job.share[link];
    flows[link] = of_other_job.flows[link];
  }
}

void Cluster::fold(LinkFold fold) {
  fold_ = std::move(fold);
  changed();
}

void Cluster::unfold() {
  fold_.reset();
  changed();
}

void Cluster::adjust(const std::map<LinkKind, LinkAdjustment>& adjustments) {
  for (LinkId link = 0; link < links_.size(); ++link) {
    const auto found = adjustments.find(links_[link].kind);
    adjustments_[link] = found == adjustments.end() ? LinkAdjustment() : found->second;
  }
  changed();
}

BytesPerSecond Cluster::own_capacity(LinkId link) const {
  const Link& values = links_[link];
  const auto chosen = values_.find(values.kind);
  const LinkValues which = chosen == values_.end() ? LinkValues::used : chosen->second;
  const BytesPerSecond bandwidth = which == LinkValues::low    ? values.low
                                   : which == LinkValues::high ? values.high
                                                               : values.bandwidth;
  const double bundled = bundles_ == nullptr ? 1 : bundles_->links[link];
  return bandwidth * adjustments_[link].bandwidth * bundled;
}

const Route& Cluster::route(Rank source, Rank destination) {
  const std::uint64_t key = pair_key(source, destination);
  if (const std::uint32_t found = route_index_.find(key); found != FlatMap::none) return routes_[found];
  if (source == destination || source >= size() || destination >= size()) {
    internal_error("no route from rank {} to rank {} of {}", source, destination, size());
  }
  Route& route = routes_.emplace_back(find_route(source, destination));
  route_index_.insert(key, static_cast<std::uint32_t>(routes_.size() - 1));
  if (route.by_fabric && splits_transfers()) add_queue_pairs(route);
  return route;
}

std::optional<LinkId> Cluster::id_of(std::string_view link) const {
  const auto found =
      std::ranges::lower_bound(by_name_, link, {}, [this](LinkId id) -> std::string_view { return links_[id].name; });
  if (found == by_name_.end() || links_[*found].name != link) return std::nullopt;
  return *found;
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
  route.from = npus_[source].host;
  route.to = npus_[destination].host;
  route.between_ports = between_ports;
  if (!between_ports) route.links = fabric_way(source, destination, 0);
  route.by_fabric = !route.links.empty();
  if (!route.by_fabric) route.links = way_of(route);
  if (route.links.empty()) {
    bad_input("platform", "{}: no route from NPU '{}' to NPU '{}'", path_, npus_[source].name, npus_[destination].name);
  }
  complete(route);
  return route;
}

void Cluster::complete(Route& route) const {
  double least = std::numeric_limits<double>::infinity();
  double slowest_write = least;
  double slowest_read = least;
  for (const LinkId id : route.links) {
    const Link& link = links_[id];
    route.latency += link.latency + adjustments_[id].latency;
    if (link.kind == LinkKind::roce) route.transport = Transport::rdma;
    // At an end of the link's range, the speed that a task reaches scales with the capacity.
    const BytesPerSecond capacity = own_capacity(id);
    const double scale = capacity / link.bandwidth;
    slowest_write = std::min(slowest_write, link.write * scale);
    slowest_read = std::min(slowest_read, link.read * scale);
    if (capacity < least) {
      least = capacity;
      route.slowest = id;
    }
  }
  route.write_factor = least / slowest_write;
  route.read_factor = least / slowest_read;
  if (!fold_.has_value()) return;
  for (LinkId& link : route.links) link = fold_->representative[link];
  route.slowest = fold_->representative[route.slowest];
}

/// The way of a route, with what kind of way it is.
std::vector<LinkId> Cluster::way_of(Route& route) {
  if (route.between_ports) return way_between_ports(route.source, route.destination);
  const auto given = ways_.find({route.from, route.to});
  if (given == ways_.end()) return source_->way(route.from, route.to);
  route.by_property = true;
  return given->second;
}

void Cluster::use_routing(const Routing& routing) {
  routing_ = routing;
  bundles_.reset();
  if (routing.kind == RoutingKind::file) {
    fabric_.reset();
    fabric_hosts_.clear();
  } else if (fabric_ == nullptr) {
    fabric_ = std::make_shared<Fabric>(read_fabric_graph(path_, links_));
    for (const Npu& npu : npus_) fabric_hosts_.push_back(fabric_->find(npu.name));
    if (!fabric_->has_choice()) {
      bad_input("routing",
                "routing {}: {} has no fabric with several ways between two NPUs; that is a cluster of topology "
                "FAT_TREE, or hosts and routers in a zone of routing Dijkstra or Floyd",
                text_of(routing), path_);
    }
  }
  if (routing.kind == RoutingKind::ideal) bundles_ = std::make_shared<LinkBundles>(fabric_->bundles(links_));
  changed();
}

void Cluster::use_queue_pairs(const QueuePairs& pairs) {
  if (!routes_.empty()) internal_error("{}: queue pairs are chosen after routes were asked for", path_);
  queue_pairs_ = pairs;
}

std::vector<LinkId> Cluster::fabric_way(Rank source, Rank destination, std::uint32_t queue_pair) const {
  if (fabric_ == nullptr) return {};
  const FabricVertex from = fabric_hosts_[source];
  const FabricVertex to = fabric_hosts_[destination];
  if (from == Fabric::none || to == Fabric::none) return {};
  std::vector<LinkId> way = fabric_->way(from, to, routing_, queue_pair);
  if (bundles_ != nullptr) {
    for (LinkId& link : way) link = bundles_->representative[link];
  }
  return way;
}

void Cluster::add_queue_pairs(Route& route) {
  FurtherWays& further = further_ways_.emplace_back();
  further.least_bytes = queue_pairs_.least_bytes;
  for (std::uint32_t pair = 1; pair < queue_pairs_.count; ++pair) {
    Route& way = further.ways.emplace_back();
    way.source = route.source;
    way.destination = route.destination;
    way.from = route.from;
    way.to = route.to;
    way.links = fabric_way(route.source, route.destination, pair);
    way.by_fabric = true;
    complete(way);
  }
  route.further = &further;
}

void Cluster::use_roce_between_servers() {
  if (!routes_.empty()) internal_error("{}: RoCE is chosen after routes were asked for", path_);
  roce_between_servers_ = true;
}

std::vector<LinkId> Cluster::way_between_ports(Rank source, Rank destination) const {
  const auto port = [&](Rank rank, const char* direction) {
    const auto name = npus_[rank].properties.find("roce");
    if (name == npus_[rank].properties.end()) {
      bad_input(
          "platform",
          "{}: NPU '{}' has no property roce, the link that is its RoCE port, so that it cannot reach other servers "
          "over RoCE; 'hcclsim platform generate' writes it for servers that the unified bus joins",
          path_, npus_[rank].name);
    }
    const std::optional<LinkId> link = id_of(name->second + direction);
    if (!link) internal_error("{}: port '{}' passed the check of the platform", path_, name->second);
    return *link;
  };
  return {port(source, "_UP"), port(destination, "_DOWN")};
}

}  // namespace hcclsim::sim
