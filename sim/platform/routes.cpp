#include "sim/platform/passes.hpp"

#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"
#include "sim/platform/values.hpp"

namespace hcclsim::sim {
namespace {

/// Two points, or two zones, in the direction of a route.
std::uint64_t pair_key(std::uint32_t from, std::uint32_t to) { return std::uint64_t{from} << 32 | to; }

bool is_full(std::string_view routing) { return routing == "Full"; }
bool is_graph(std::string_view routing) {
  return routing == "Floyd" || routing == "Dijkstra" || routing == "DijkstraCache";
}

/// Sets of points that routes join.
class Components {
 public:
  explicit Components(std::size_t points) : parents_(points) { std::iota(parents_.begin(), parents_.end(), 0U); }
  std::uint32_t find(std::uint32_t point) {
    while (parents_[point] != point) point = parents_[point] = parents_[parents_[point]];
    return point;
  }
  void join(std::uint32_t a, std::uint32_t b) { parents_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> parents_;
};

class RouteCheck {
 public:
  RouteCheck(const PlatformNames& names, PlatformProblems& problems) : names_(names), problems_(problems) {}

  void check() {
    zone_routes_.resize(names_.zones().size());
    linked_.resize(names_.points().size());
    find_npus();
    for (std::uint32_t zone = 0; zone < names_.zones().size(); ++zone) check_zone(zone);
    for (std::uint32_t zone = 0; zone < names_.zones().size(); ++zone) check_joined(zone);
  }

 private:
  /// Marks the NPUs, and every inner zone that holds one.
  void find_npus() {
    has_npu_.resize(names_.points().size());
    std::unordered_map<std::uint32_t, std::uint32_t> point_of_zone;
    for (const PlatformPoint& point : names_.points()) {
      if (point.inner != no_number) point_of_zone.emplace(point.inner, names_.number(point));
    }
    for (const PlatformPoint& point : names_.points()) {
      if (!point.host || !property(point.element, "npu")) continue;
      has_npu_[names_.number(point)] = true;
      for (std::uint32_t zone = point.zone; zone != no_number; zone = names_.zones()[zone].parent) {
        const auto around = point_of_zone.find(zone);
        if (around == point_of_zone.end() || has_npu_[around->second]) break;
        has_npu_[around->second] = true;
      }
    }
  }

  void check_zone(std::uint32_t zone) {
    const PlatformZone& entry = names_.zones()[zone];
    if (entry.routing == "Fabric") return;
    for (const pugi::xml_node& child : entry.element.children()) {
      const std::string_view tag = child.name();
      if (tag == "host_link") {
        check_host_link(child, zone);
      } else if (tag == "route" || tag == "bypassRoute" || tag == "zoneRoute" || tag == "ASroute" ||
                 tag == "bypassZoneRoute" || tag == "bypassASroute") {
        check_route(child, tag, zone);
      } else if (tag == "prop" && std::string_view(child.attribute("id").value()).starts_with("route:")) {
        check_route_property(child);
      } else if (tag == "backbone" && entry.routing != "Cluster") {
        problems_.fatal(place(child), "a backbone can only stand in a zone with routing Cluster");
      }
    }
  }

  void check_host_link(const pugi::xml_node& element, std::uint32_t zone) {
    const std::string_view name = element.attribute("id").value();
    const PlatformPoint* const point = names_.find_point(name);
    if (names_.zones()[zone].routing != "Cluster") {
      problems_.fatal(place(element), "host_link '{}' can only stand in a zone with routing Cluster", name);
    }
    if (point == nullptr || !point->host) {
      problems_.fatal(place(element), "host_link for the unknown host '{}'", name);
    } else if (point->zone != zone) {
      problems_.fatal(place(element), "host_link for host '{}', which is not in this zone", name);
    } else if (linked_[names_.number(*point)]) {
      problems_.fatal(place(element), "duplicate host_link for host '{}'", name);
    } else {
      linked_[names_.number(*point)] = true;
    }
    for (const char* const end : {"up", "down"}) {
      const std::string fault = names_.link_fault(element.attribute(end).value(), "NONE", place(element));
      if (!fault.empty()) problems_.fatal(place(element), "host_link of '{}': {}: {}", name, end, fault);
    }
  }

  /// The point at one end of a route; nullptr after a report.
  const PlatformPoint* find_end(const pugi::xml_node& element, const char* end, std::uint32_t zone, bool of_zones) {
    const std::string_view name = element.attribute(end).value();
    const PlatformPoint* const point = names_.find_point(name);
    const std::string_view wanted = of_zones ? "zone" : "host or router";
    if (point == nullptr || (point->inner != no_number) != of_zones) {
      problems_.fatal(place(element), "{} from '{}' to '{}': {} names the unknown {} '{}'", element.name(),
                      element.attribute("src").value(), element.attribute("dst").value(), end, wanted, name);
      return nullptr;
    }
    if (point->zone != zone) {
      problems_.fatal(place(element), "{} from '{}' to '{}': {} '{}' is not in the zone of the route", element.name(),
                      element.attribute("src").value(), element.attribute("dst").value(), wanted, name);
      return nullptr;
    }
    return point;
  }

  void check_gateway(const pugi::xml_node& element, const char* attribute, const PlatformPoint& zone) {
    const std::string_view name = element.attribute(attribute).value();
    const PlatformPoint* const gateway = names_.find_point(name);
    if (gateway == nullptr || gateway->inner != no_number || !names_.inside(gateway->zone, zone.inner)) {
      problems_.fatal(place(element), "{}: {} '{}' is not a host or router of zone '{}'", element.name(), attribute,
                      name, zone.name);
    } else if (gateway->host && std::string_view(element.name()).starts_with("bypass")) {
      // SimGrid leads a transfer of the gateway itself over its loopback, which no cluster has.
      problems_.fatal(place(element), "{}: {} '{}' is a host; a bypass between zones needs routers as gateways",
                      element.name(), attribute, name);
    }
  }

  void check_route(const pugi::xml_node& element, std::string_view tag, std::uint32_t zone) {
    const bool bypass = tag.starts_with("bypass");
    const bool of_zones = tag != "route" && tag != "bypassRoute";
    const std::string_view routing = names_.zones()[zone].routing;
    if (!bypass && !is_full(routing) && !is_graph(routing)) {
      problems_.fatal(place(element), "a zone with routing {} takes no <{}>{}", routing, tag,
                      routing == "Cluster" ? "; give its hosts a host_link, or use bypassRoute" : "");
    }
    for (const pugi::xml_node& part : element.children("link_ctn")) {
      const std::string fault =
          names_.link_fault(part.attribute("id").value(), part.attribute("direction").as_string("NONE"), place(part));
      if (!fault.empty()) problems_.fatal(place(part), "{}", fault);
    }
    if (!element.child("link_ctn")) {
      problems_.fatal(place(element), "{} from '{}' to '{}' has no link", tag, element.attribute("src").value(),
                      element.attribute("dst").value());
    }
    const PlatformPoint* const source = find_end(element, "src", zone, of_zones);
    const PlatformPoint* const destination = find_end(element, "dst", zone, of_zones);
    if (source == nullptr || destination == nullptr) return;
    if (of_zones) {
      check_gateway(element, "gw_src", *source);
      check_gateway(element, "gw_dst", *destination);
    }
    const std::string_view symmetrical = element.attribute("symmetrical").as_string("YES");
    const bool both = !bypass && (symmetrical == "YES" || symmetrical == "yes") && source != destination;
    auto& routes = bypass ? bypasses_ : zone_routes_[zone];
    const auto add = [&](const PlatformPoint& from, const PlatformPoint& to) {
      return routes.insert(pair_key(names_.number(from), names_.number(to))).second;
    };
    const bool first = add(*source, *destination);
    if (!first || (both && !add(*destination, *source))) {
      problems_.fatal(place(element), "duplicate {} between '{}' and '{}'{}", tag, source->name, destination->name,
                      bypass ? "" : "; a route holds for both directions unless symmetrical=\"NO\"");
    }
  }

  /// "route:npu-0:npu-5" with "pcie-0-4:UP hccs-4-5:UP": a way that sim::Cluster adds.
  void check_route_property(const pugi::xml_node& element) {
    const std::string_view id = element.attribute("id").value();
    const std::vector<std::string_view> ends = split(id.substr(id.find(':') + 1), ':');
    const PlatformPoint* const source = ends.size() == 2 ? names_.find_point(ends[0]) : nullptr;
    const PlatformPoint* const destination = ends.size() == 2 ? names_.find_point(ends[1]) : nullptr;
    if (source == nullptr || destination == nullptr || !source->host || !destination->host || source == destination) {
      problems_.fatal(place(element), "property '{}' must name two hosts of this file: route:FROM:TO", id);
      return;
    }
    if (source->zone != destination->zone) {
      problems_.fatal(place(element), "property '{}' joins hosts of different zones", id);
    }
    const std::uint64_t key = pair_key(names_.number(*source), names_.number(*destination));
    const std::uint64_t back = pair_key(names_.number(*destination), names_.number(*source));
    if (!bypasses_.insert(key).second || !bypasses_.insert(back).second) {
      problems_.fatal(place(element), "property '{}': the two hosts have a route of their own already", id);
    }
    const std::string_view list = element.attribute("value").value();
    bool empty = true;
    for (const std::string_view part : split(list, ' ')) {
      if (part.empty()) continue;
      empty = false;
      const std::size_t colon = part.rfind(':');
      const std::string_view direction = colon == std::string_view::npos ? "NONE" : part.substr(colon + 1);
      // The property is read when the whole file is, so the link may stand below.
      const std::string fault = names_.link_fault(part.substr(0, colon), direction, PTRDIFF_MAX);
      if (!fault.empty()) problems_.fatal(place(element), "property '{}': {}", id, fault);
    }
    if (empty) problems_.fatal(place(element), "property '{}' names no link", id);
  }

  /// Reports the first two NPUs, or zones with NPUs, of a zone that no route joins.
  void check_joined(std::uint32_t zone) {
    const PlatformZone& entry = names_.zones()[zone];
    std::vector<std::uint32_t> ends;
    for (const std::uint32_t point : entry.points) {
      if (has_npu_[point]) ends.push_back(point);
    }
    if (ends.size() < 2 || entry.routing == "Fabric" || entry.routing == "Vivaldi") return;
    if (is_graph(entry.routing)) {
      check_graph(zone, ends);
      return;
    }
    if (entry.routing == "Cluster") std::erase_if(ends, [&](std::uint32_t point) { return linked_[point]; });
    // The number of pairs shows whether one is missing. Only then is it searched, in at most as many steps as there are
    // routes.
    std::uint64_t missing = std::uint64_t{ends.size()} * (ends.size() - 1);
    std::vector<bool> is_end(names_.points().size());
    for (const std::uint32_t end : ends) is_end[end] = true;
    const auto count = [&](const std::unordered_set<std::uint64_t>& routes, bool unless_bypassed) {
      for (const std::uint64_t route : routes) {
        const auto from = static_cast<std::uint32_t>(route >> 32);
        const auto to = static_cast<std::uint32_t>(route);
        if (from != to && is_end[from] && is_end[to] && !(unless_bypassed && bypasses_.contains(route))) --missing;
      }
    };
    count(bypasses_, false);
    count(zone_routes_[zone], true);
    if (missing == 0) return;
    for (const std::uint32_t from : ends) {
      for (const std::uint32_t to : ends) {
        const std::uint64_t route = pair_key(from, to);
        if (from == to || bypasses_.contains(route) || zone_routes_[zone].contains(route)) continue;
        report_missing(zone, from, to);
        return;
      }
    }
  }

  void check_graph(std::uint32_t zone, const std::vector<std::uint32_t>& ends) {
    Components components(names_.points().size());
    for (const std::uint64_t route : zone_routes_[zone]) {
      components.join(static_cast<std::uint32_t>(route >> 32), static_cast<std::uint32_t>(route));
    }
    for (const std::uint32_t end : ends) {
      if (components.find(end) == components.find(ends.front())) continue;
      report_missing(zone, ends.front(), end);
      return;
    }
  }

  void report_missing(std::uint32_t zone, std::uint32_t from, std::uint32_t to) {
    const PlatformZone& entry = names_.zones()[zone];
    problems_.fatal(place(entry.element), "zone '{}' (routing {}) has no route from '{}' to '{}'",
                    entry.element.attribute("id").value(), entry.routing, names_.points()[from].name,
                    names_.points()[to].name);
  }

  const PlatformNames& names_;
  PlatformProblems& problems_;
  std::vector<bool> has_npu_;  ///< by point
  std::vector<bool> linked_;   ///< by point: it has a host_link
  std::vector<std::unordered_set<std::uint64_t>> zone_routes_;
  std::unordered_set<std::uint64_t> bypasses_;
};

}  // namespace

void check_routes(const PlatformNames& names, PlatformProblems& problems) { RouteCheck(names, problems).check(); }

}  // namespace hcclsim::sim
