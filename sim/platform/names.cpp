#include "sim/platform/names.hpp"

#include <optional>

#include "sim/platform/values.hpp"

namespace hcclsim::sim {
namespace {

// A larger cluster is a typing mistake: SimGrid would fill the memory before it reported anything.
constexpr std::size_t max_hosts = std::size_t{1} << 20;
constexpr double max_links = std::size_t{1} << 20;  // that clusters make

/// The link's name without the _UP or _DOWN by which SimGrid names the directions of a SPLITDUPLEX link.
std::string_view without_direction(std::string_view name) {
  if (name.ends_with("_UP")) return name.substr(0, name.size() - 3);
  if (name.ends_with("_DOWN")) return name.substr(0, name.size() - 5);
  return name;
}

}  // namespace

PlatformNames::PlatformNames(const pugi::xml_node& platform, PlatformProblems& problems) : problems_(problems) {
  collect(platform, no_number);
}

const PlatformPoint* PlatformNames::find_point(std::string_view name) const {
  const auto found = point_numbers_.find(name);
  return found == point_numbers_.end() ? nullptr : &points_[found->second];
}

const PlatformLink* PlatformNames::find_link(std::string_view name) const {
  const auto found = link_numbers_.find(name);
  return found == link_numbers_.end() ? nullptr : &links_[found->second];
}

bool PlatformNames::inside(std::uint32_t zone, std::uint32_t outer) const {
  while (zone != no_number && zone != outer) zone = zones_[zone].parent;
  return zone == outer;
}

std::string PlatformNames::link_fault(std::string_view name, std::string_view direction, std::ptrdiff_t at) const {
  const PlatformLink* link = find_link(name);
  bool directed = direction == "UP" || direction == "DOWN";
  if (link == nullptr && !directed) {
    link = find_link(without_direction(name));
    directed = true;
    if (link != nullptr && !link->split) link = nullptr;
  }
  if (link == nullptr) {
    if (links_by_clusters_ && name.find("link_") != std::string_view::npos) return {};
    return fmt::format("unknown link '{}'", name);
  }
  if (place(link->element) > at) {
    return fmt::format("link '{}' is defined only in line {}, below its use", name,
                       problems_.line(place(link->element)));
  }
  if (link->split && !directed) {
    return fmt::format("link '{}' is SPLITDUPLEX: its direction must be UP or DOWN", name);
  }
  if (!link->split && directed) return fmt::format("link '{}' is not SPLITDUPLEX and has no direction", name);
  return {};
}

void PlatformNames::collect(const pugi::xml_node& parent, std::uint32_t zone) {
  for (const pugi::xml_node& child : parent.children()) {
    const std::string_view tag = child.name();
    if (tag == "zone" || tag == "AS") {
      const std::uint32_t inner = add_zone(child, child.attribute("routing").value(), zone);
      collect(child, inner);
    } else if (tag == "cluster" || tag == "cabinet") {
      collect_cluster(child, zone);
    } else if (tag == "peer") {
      links_by_clusters_ = true;
      add_point(child.attribute("id").value(), zone, true, child);
    } else if (tag == "host" || tag == "router") {
      add_point(child.attribute("id").value(), zone, tag == "host", child);
    } else if (tag == "link" || tag == "backbone") {
      add_link(child);
    }
  }
}

void PlatformNames::collect_cluster(const pugi::xml_node& cluster, std::uint32_t zone) {
  links_by_clusters_ = true;
  const std::string_view radical = cluster.attribute("radical").value();
  const auto numbers = parse_radical(radical, max_hosts - points_.size());
  if (!numbers) {
    problems_.fatal(place(cluster), "{} {}: radical '{}' is not a list of numbers such as 0-7,16 (at most {} hosts)",
                    cluster.name(), cluster.attribute("id").value(), radical, max_hosts);
    return;
  }
  const std::string prefix = cluster.attribute("prefix").value();
  const std::string suffix = cluster.attribute("suffix").value();
  const std::string id = cluster.attribute("id").value();
  // The hosts of a cabinet stand in the zone itself.
  const bool own_zone = std::string_view(cluster.name()) == "cluster";
  const std::uint32_t inner = own_zone ? add_zone(cluster, "Fabric", zone) : zone;
  for (const std::uint32_t number : *numbers) {
    add_point(fmt::format("{}{}{}", prefix, number, suffix), inner, true, cluster);
  }
  if (!own_zone) return;
  const std::string_view topology = cluster.attribute("topology").as_string("FLAT");
  if (topology == "FLAT") {  // the others have no router in SimGrid 3.32, whatever router_id says
    const std::string router = cluster.attribute("router_id").value();
    add_point(router.empty() ? fmt::format("{}{}_router{}", prefix, id, suffix) : router, inner, false, cluster);
    return;
  }
  const std::string_view parameters = cluster.attribute("topo_parameters").value();
  const auto hosts = topology_hosts(topology, parameters);
  if (!hosts) {
    problems_.fatal(place(cluster), "cluster {}: topo_parameters '{}' of a {} must have the form {}", id, parameters,
                    topology, topology_form(topology));
    return;
  }
  if (*hosts != numbers->size()) {
    problems_.fatal(place(cluster), "cluster {}: topo_parameters '{}' are a {} of {} hosts, but radical '{}' names {}",
                    id, parameters, topology, *hosts, radical.substr(0, 40), numbers->size());
    return;
  }
  links_of_clusters_ += topology_links(topology, parameters);
  if (links_of_clusters_ > max_links) {
    problems_.fatal(place(cluster),
                    "cluster {}: with topo_parameters '{}' the clusters make {:.0f} links; accepted: {}", id,
                    parameters, links_of_clusters_, max_links);
  }
}

std::uint32_t PlatformNames::add_zone(const pugi::xml_node& element, std::string routing, std::uint32_t parent) {
  const auto zone = static_cast<std::uint32_t>(zones_.size());
  zones_.push_back({element, std::move(routing), parent, {}});
  const std::size_t before = points_.size();
  add_point(element.attribute("id").value(), parent, false, element);
  if (points_.size() > before) points_.back().inner = zone;
  return zone;
}

void PlatformNames::add_point(std::string name, std::uint32_t zone, bool host, const pugi::xml_node& element) {
  const auto number = static_cast<std::uint32_t>(points_.size());
  const auto [known, added] = point_numbers_.try_emplace(name, number);
  if (!added) {
    const pugi::xml_node& first = points_[known->second].element;
    problems_.fatal(place(element), "duplicate {} '{}': a {} of that name stands in line {}", element.name(), name,
                    first.name(), problems_.line(place(first)));
    return;
  }
  points_.push_back({std::move(name), zone, no_number, host, element});
  if (zone != no_number) zones_[zone].points.push_back(number);
}

void PlatformNames::add_link(const pugi::xml_node& element) {
  const std::string_view policy = element.attribute("sharing_policy").value();
  const bool split = policy == "SPLITDUPLEX" || policy == "FULLDUPLEX";
  std::string name = element.attribute("id").value();
  const auto report = [&](const PlatformLink& first) {
    problems_.fatal(place(element), "duplicate link '{}': link '{}' stands in line {}", name, first.name,
                    problems_.line(place(first.element)));
  };
  const auto [known, added] = link_numbers_.try_emplace(name, static_cast<std::uint32_t>(links_.size()));
  if (!added) {
    report(links_[known->second]);
    return;
  }
  // "a_UP" is also SimGrid's name for a direction of a SPLITDUPLEX link "a".
  const std::string_view base = without_direction(name);
  if (base.size() != name.size()) {
    const PlatformLink* const other = find_link(base);
    if (other != nullptr && other->split) report(*other);
  }
  for (const char* const direction : {"_UP", "_DOWN"}) {
    const PlatformLink* const other = split ? find_link(name + direction) : nullptr;
    if (other != nullptr) report(*other);
  }
  links_.push_back({std::move(name), element, split});
}

}  // namespace hcclsim::sim
