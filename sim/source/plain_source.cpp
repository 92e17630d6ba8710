#include "sim/source/plain_source.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <pugixml.hpp>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "sim/flat_map.hpp"
#include "sim/platform/document.hpp"
#include "sim/source/route_graph.hpp"

namespace hcclsim::sim {
namespace {

constexpr LinkId no_link = ~LinkId{0};

bool is_zone(std::string_view tag) { return tag == "zone" || tag == "AS"; }
bool is_route(std::string_view tag) { return tag == "route" || tag == "zoneRoute" || tag == "ASroute"; }

bool reads_tag(std::string_view tag) {
  constexpr std::array others{"prop", "host", "router", "link", "host_link", "bypassRoute", ""};  // "": a comment
  return is_zone(tag) || is_route(tag) || std::ranges::find(others, tag) != others.end();
}

/// A latency that is not given is 0.
std::optional<Seconds> latency_of(const pugi::xml_node& link) {
  const std::string_view text = link.attribute("latency").as_string("0");
  if (text == "0") return 0;
  try {
    return parse_duration(text);
  } catch (const Error&) {
    return std::nullopt;  // a unit that SimGrid alone knows, such as weeks
  }
}

/// Whether the link has one speed, at all times.
bool is_plain_link(const pugi::xml_node& link) {
  for (const pugi::xml_attribute& attribute : link.attributes()) {
    const std::string_view name = attribute.name();
    if (name != "id" && name != "bandwidth" && name != "latency" && name != "sharing_policy") return false;
  }
  const std::string_view policy = link.attribute("sharing_policy").as_string("SHARED");
  if (policy != "SHARED" && policy != "SPLITDUPLEX" && policy != "FATPIPE") return false;
  if (std::string_view(link.attribute("bandwidth").value()).find(',') != std::string_view::npos) return false;
  return latency_of(link).has_value();
}

bool is_graph(std::string_view routing) {
  return routing == "Dijkstra" || routing == "DijkstraCache" || routing == "Floyd";
}

bool is_symmetrical(const pugi::xml_node& route) {
  const std::string_view symmetrical = route.attribute("symmetrical").as_string("YES");
  return symmetrical == "YES" || symmetrical == "yes";
}

/// Whether a graph of routes is read by ourselves: SimGrid turns the links of a longer route around.
bool is_graph_route(const pugi::xml_node& route) {
  const pugi::xml_node link = route.child("link_ctn");
  return is_symmetrical(route) && !link.empty() && !link.next_sibling("link_ctn");
}

/// Whether we read all that stands in the zone and in those within it. Ways between hosts of a zone and hosts of zones
/// within it are not found, nor those of a graph of zones; a graph within another zone is left to SimGrid, which puts
/// its links before those that lead there.
bool is_plain_zone(const pugi::xml_node& zone) {
  const std::string_view routing = zone.attribute("routing").value();
  const bool graph = is_graph(routing);
  if (!graph && routing != "Full" && routing != "Cluster" && routing != "None") return false;
  bool hosts = false;
  bool zones = false;
  for (const pugi::xml_node& child : zone.children()) {
    const std::string_view tag = child.name();
    if (!reads_tag(tag) || (tag == "link" && !is_plain_link(child))) return false;
    if (graph && is_route(tag) && !is_graph_route(child)) return false;
    if (is_zone(tag) && (graph || is_graph(child.attribute("routing").value()) || !is_plain_zone(child))) return false;
    hosts = hosts || tag == "host";
    zones = zones || is_zone(tag);
  }
  return !(hosts && zones);
}

bool is_plain(const pugi::xml_node& platform) {
  std::size_t zones = 0;
  for (const pugi::xml_node& child : platform.children()) {
    if (std::string_view(child.name()).empty()) continue;
    if (!is_zone(child.name()) || !is_plain_zone(child)) return false;
    ++zones;
  }
  return zones == 1;
}

/// Routes between pairs of points: hosts and routers, or zones.
class RouteTable {
 public:
  struct Entry {
    std::uint32_t first = 0;  // in the list of all links
    std::uint32_t links = 0;
    std::uint32_t from_gateway = no_number;
    std::uint32_t to_gateway = no_number;
  };

  void add(std::uint32_t from, std::uint32_t to, const std::vector<LinkId>& links, std::uint32_t from_gateway,
           std::uint32_t to_gateway) {
    index_.insert(key(from, to), static_cast<std::uint32_t>(entries_.size()));
    entries_.push_back({static_cast<std::uint32_t>(links_.size()), static_cast<std::uint32_t>(links.size()),
                        from_gateway, to_gateway});
    links_.insert(links_.end(), links.begin(), links.end());
  }

  [[nodiscard]] const Entry* find(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t entry = index_.find(key(from, to));
    return entry == FlatMap::none ? nullptr : &entries_[entry];
  }

  void append(const Entry& entry, std::vector<LinkId>& way) const {
    const auto first = links_.begin() + entry.first;
    way.insert(way.end(), first, first + entry.links);
  }

 private:
  [[nodiscard]] static std::uint64_t key(std::uint32_t from, std::uint32_t to) {
    return std::uint64_t{from} << 32 | to;
  }

  FlatMap index_;
  std::vector<Entry> entries_;
  std::vector<LinkId> links_;
};

class PlainSource final : public PlatformSource {
 public:
  explicit PlainSource(const PlatformDocument& document) : names_(&*document.names) {
    read_points();
    number_links();
    for (std::uint32_t zone = 0; zone < names_->zones().size(); ++zone) read_routes(zone);
    directions_ = {};
  }

  [[nodiscard]] std::map<std::string, std::string> properties() const override {
    return properties_of(names_->zones().front().element);
  }

  void visit_hosts(const std::function<void(SourceHost)>& visit) const override {
    for (const PlatformPoint& point : names_->points()) {
      if (!point.host || (!property(point.element, "npu") && !property(point.element, "cpu"))) continue;
      visit({names_->number(point), point.name, point.zone, properties_of(point.element)});
    }
  }

  void visit_links(const std::function<void(const SourceLink&)>& visit) const override {
    for (const Direction& direction : numbered_) {
      const PlatformLink& from = names_->links()[direction.link];
      SourceLink link{.name = from.name + direction.suffix,
                      .shared = std::string_view(from.element.attribute("sharing_policy").value()) != "FATPIPE",
                      .bandwidth = parse_bandwidth(from.element.attribute("bandwidth").value()),
                      .latency = latency_of(from.element).value_or(0)};
      set_properties(link, [&](const char* key) -> const char* {
        const pugi::xml_attribute value = property(from.element, key);
        return value ? value.value() : nullptr;
      });
      visit(link);
    }
  }

  void visit_route_properties(const std::function<void(const std::string&, const char*)>& visit) const override {
    for (const PlatformZone& zone : names_->zones()) {
      for (const pugi::xml_node& prop : zone.element.children("prop")) {
        const std::string_view key = prop.attribute("id").value();
        if (key.starts_with("route:")) visit(std::string(key), prop.attribute("value").value());
      }
    }
  }

  [[nodiscard]] std::vector<LinkId> way(HostId from, HostId to) override {
    std::vector<LinkId> way;
    if (!append_way(from, to, way)) way.clear();
    return way;
  }

 private:
  struct Zone {
    bool star = false;
    std::uint32_t graph = no_number;  ///< its number in graphs_, if its routes are one
    std::uint32_t parent = no_number;
    std::uint32_t depth = 0;
    std::uint32_t point = no_number;  ///< the zone as a point of its parent
  };
  /// A link of the file, in one direction.
  struct Direction {
    std::uint32_t link = 0;
    const char* suffix = "";
  };
  /// LinkIds of a link of the file; those of a link with one direction are the same.
  struct Directions {
    LinkId up = no_link;
    LinkId down = no_link;
  };
  /// The way of a point of a star to its centre and back; without a host_link it is at the centre.
  struct Arm {
    LinkId up = no_link;
    LinkId down = no_link;
  };

  static std::map<std::string, std::string> properties_of(const pugi::xml_node& element) {
    std::map<std::string, std::string> properties;
    for (const pugi::xml_node& prop : element.children("prop")) {
      properties.insert_or_assign(prop.attribute("id").value(), prop.attribute("value").value());
    }
    return properties;
  }

  void read_points() {
    for (const PlatformZone& zone : names_->zones()) {
      zones_.push_back({.star = zone.routing == "Cluster",
                        .graph = is_graph(zone.routing) ? add_graph(zone) : no_number,
                        .parent = zone.parent,
                        .depth = zone.parent == no_number ? 0 : zones_[zone.parent].depth + 1});
    }
    arms_.resize(names_->points().size());
    for (const PlatformPoint& point : names_->points()) {
      const std::uint32_t number = names_->number(point);
      zone_of_.push_back(point.zone);
      if (point.inner != no_number) zones_[point.inner].point = number;
    }
  }

  /// Where ways are equally long, Floyd's search takes points in the order of the file, Dijkstra's in that of routes.
  std::uint32_t add_graph(const PlatformZone& zone) {
    const bool floyd = zone.routing == "Floyd";
    graphs_.emplace_back(floyd ? RouteGraph::Search::floyd : RouteGraph::Search::dijkstra);
    for (const std::uint32_t point : zone.points) {
      if (floyd) graphs_.back().add_point(point);
    }
    return static_cast<std::uint32_t>(graphs_.size() - 1);
  }

  void number_links() {
    directions_.resize(names_->links().size());
    number_links(0);
  }

  void number_links(std::uint32_t zone) {
    const pugi::xml_node& element = names_->zones()[zone].element;
    std::vector<std::pair<std::string, Direction>> own;
    for (const pugi::xml_node& child : element.children("link")) {
      const PlatformLink& link = *names_->find_link(child.attribute("id").value());
      const std::uint32_t number = names_->number(link);
      for (const char* const suffix : {"_UP", "_DOWN"}) {
        if (link.split) own.emplace_back(link.name + suffix, Direction{number, suffix});
      }
      if (!link.split) own.emplace_back(link.name, Direction{number, ""});
    }
    std::ranges::sort(own, {}, &std::pair<std::string, Direction>::first);
    for (const auto& [name, direction] : own) {
      const auto id = static_cast<LinkId>(numbered_.size());
      const std::string_view suffix = direction.suffix;
      Directions& directions = directions_[direction.link];
      if (suffix != "_DOWN") directions.up = id;
      if (suffix != "_UP") directions.down = id;
      numbered_.push_back(direction);
    }
    for (const std::uint32_t point : names_->zones()[zone].points) {
      if (names_->points()[point].inner != no_number) number_links(names_->points()[point].inner);
    }
  }

  /// The link that a route names, as "a" with a direction, or as "a_UP".
  [[nodiscard]] LinkId link_id(std::string_view name, std::string_view direction) const {
    const PlatformLink* link = names_->find_link(name);
    if (link == nullptr) {
      const std::size_t suffix = name.rfind('_');
      direction = name.substr(suffix + 1);
      link = names_->find_link(name.substr(0, suffix));
      if (link == nullptr) internal_error("link '{}' passed the check of the platform", name);
      return direction == "DOWN" ? directions_[names_->number(*link)].down : directions_[names_->number(*link)].up;
    }
    const Directions& ids = directions_[names_->number(*link)];
    return direction == "DOWN" ? ids.down : ids.up;
  }

  /// The link of the same pair in the other direction; a link with one direction is its own.
  [[nodiscard]] LinkId opposite(LinkId link) const {
    const Directions& ids = directions_[numbered_[link].link];
    return ids.up == link ? ids.down : ids.up;
  }

  [[nodiscard]] std::uint32_t point_number(const pugi::xml_attribute& name) const {
    const PlatformPoint* const point = names_->find_point(name.value());
    return point == nullptr ? no_number : names_->number(*point);
  }

  void read_routes(std::uint32_t zone) {
    for (const pugi::xml_node& child : names_->zones()[zone].element.children()) {
      const std::string_view tag = child.name();
      if (tag == "host_link") {
        arms_[point_number(child.attribute("id"))] = {link_id(child.attribute("up").value(), ""),
                                                      link_id(child.attribute("down").value(), "")};
      } else if (is_route(tag)) {
        read_route(child, routes_, true);
        if (zones_[zone].graph != no_number) join(graphs_[zones_[zone].graph], child);
      } else if (tag == "bypassRoute") {
        read_route(child, bypasses_, false);
      }
    }
  }

  void read_route(const pugi::xml_node& element, RouteTable& table, bool may_be_symmetrical) {
    const std::uint32_t from = point_number(element.attribute("src"));
    const std::uint32_t to = point_number(element.attribute("dst"));
    const std::uint32_t from_gateway = point_number(element.attribute("gw_src"));
    const std::uint32_t to_gateway = point_number(element.attribute("gw_dst"));
    std::vector<LinkId> links;
    for (const pugi::xml_node& part : element.children("link_ctn")) {
      links.push_back(link_id(part.attribute("id").value(), part.attribute("direction").as_string("NONE")));
    }
    table.add(from, to, links, from_gateway, to_gateway);
    if (!may_be_symmetrical || from == to || !is_symmetrical(element)) return;
    std::ranges::reverse(links);
    for (LinkId& link : links) link = opposite(link);
    table.add(to, from, links, to_gateway, from_gateway);
  }

  void join(RouteGraph& graph, const pugi::xml_node& route) const {
    const std::uint32_t from = point_number(route.attribute("src"));
    const std::uint32_t to = point_number(route.attribute("dst"));
    graph.join(from, to, routes_.find(from, to)->links);
  }

  /// Appends the way between two hosts or routers; false if there is none.
  // NOLINTNEXTLINE(misc-no-recursion): as deep as zones stand in one another
  [[nodiscard]] bool append_way(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& way) {
    if (zone_of_[from] == zone_of_[to]) {
      append_local(from, to, way);
      return true;
    }
    std::uint32_t from_zone = zone_of_[from];
    std::uint32_t to_zone = zone_of_[to];
    while (zones_[from_zone].depth > zones_[to_zone].depth) from_zone = zones_[from_zone].parent;
    while (zones_[to_zone].depth > zones_[from_zone].depth) to_zone = zones_[to_zone].parent;
    if (from_zone == to_zone) return false;  // one zone holds the other
    while (zones_[from_zone].parent != zones_[to_zone].parent) {
      from_zone = zones_[from_zone].parent;
      to_zone = zones_[to_zone].parent;
    }
    const RouteTable::Entry* const route = routes_.find(zones_[from_zone].point, zones_[to_zone].point);
    if (route == nullptr) return false;
    if (from != route->from_gateway && !append_way(from, route->from_gateway, way)) return false;
    routes_.append(*route, way);
    return to == route->to_gateway || append_way(route->to_gateway, to, way);
  }

  /// Appends the way between two points of one zone; nothing where the zone leads nowhere, as SimGrid does.
  void append_local(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& way) {
    const RouteTable::Entry* const bypass = bypasses_.find(from, to);
    const RouteTable::Entry* const route = routes_.find(from, to);
    const Zone& zone = zones_[zone_of_[from]];
    if (bypass != nullptr) {
      bypasses_.append(*bypass, way);
    } else if (zone.graph != no_number) {
      for (std::uint32_t at = from; const std::uint32_t next : graphs_[zone.graph].way(from, to)) {
        routes_.append(*routes_.find(std::exchange(at, next), next), way);
      }
    } else if (route != nullptr) {
      routes_.append(*route, way);
    } else if (zone.star) {
      const LinkId up = arms_[from].up;
      const LinkId down = arms_[to].down;
      if (up != no_link) way.push_back(up);
      if (down != no_link && down != up) way.push_back(down);
    }
  }

  const PlatformNames* names_;  ///< valid while the file is loaded
  std::vector<Zone> zones_;
  std::vector<RouteGraph> graphs_;
  std::vector<std::uint32_t> zone_of_;  // by point
  std::vector<Arm> arms_;               // by point
  std::vector<Direction> numbered_;     // by LinkId
  std::vector<Directions> directions_;  // by number of the link in the file; while routes are read
  RouteTable routes_;
  RouteTable bypasses_;
};

}  // namespace

std::unique_ptr<PlatformSource> make_plain_source(const PlatformDocument& document) {
  if (!is_plain(document.document.document_element())) return nullptr;
  return std::make_unique<PlainSource>(document);
}

}  // namespace hcclsim::sim
