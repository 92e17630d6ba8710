#include "sim/fabric/graph.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/platform/values.hpp"

namespace hcclsim::sim {
namespace {

/// A link of a FAT_TREE. SimGrid 3.32 names it link_from_CHILD_PARENT_NUMBER: numbers of nodes within the tree, hosts
/// first, then the number of the link among those of all trees of the file.
struct TreeLink {
  std::uint32_t child = 0;
  std::uint32_t parent = 0;
  std::optional<LinkId> up{};
  std::optional<LinkId> down{};
};

class GraphReader {
 public:
  GraphReader(const std::string& path, std::span<const Link> links) : path_(path) {
    for (LinkId id = 0; id < links.size(); ++id) {
      ids_.emplace(links[id].name, id);
      add_tree_link(links[id].name, id);
    }
  }

  FabricGraph read() {
    pugi::xml_document document;
    if (!document.load_file(path_.c_str())) internal_error("{} passed its check but cannot be read", path_);
    read_zones(document.document_element());
    read_own_ways(document.document_element());
    return std::move(graph_);
  }

 private:
  /// Takes "link_from_0_31_0_UP" apart; other links are left alone.
  void add_tree_link(std::string_view name, LinkId id) {
    constexpr std::string_view prefix = "link_from_";
    if (!name.starts_with(prefix)) return;
    const std::vector<std::string_view> parts = split(name.substr(prefix.size()), '_');
    if (parts.size() != 3 && parts.size() != 4) return;
    std::array<std::optional<std::uint32_t>, 3> numbers;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      // Switches of some trees have numbers below 0.
      const std::optional<std::int32_t> number = parse_number<std::int32_t>(parts[i]);
      if (!number.has_value()) return;
      numbers[i] = static_cast<std::uint32_t>(*number);
    }
    TreeLink& link = tree_links_[*numbers[2]];
    link.child = *numbers[0];
    link.parent = *numbers[1];
    if (parts.size() == 3 || parts[3] == "UP") link.up = id;
    if (parts.size() == 3 || parts[3] == "DOWN") link.down = id;
  }

  FabricVertex add_vertex(bool is_switch) {
    graph_.is_switch.push_back(is_switch);
    return static_cast<FabricVertex>(graph_.is_switch.size() - 1);
  }

  FabricVertex add_host(const std::string& name) {
    const FabricVertex vertex = add_vertex(false);
    graph_.hosts.emplace(name, vertex);
    return vertex;
  }

  void read_zones(const pugi::xml_node& parent) {
    for (const pugi::xml_node& child : parent.children()) {
      const std::string_view tag = child.name();
      if (tag == "cluster" && std::string_view(child.attribute("topology").value()) == "FAT_TREE") read_tree(child);
      if (tag != "zone" && tag != "AS") continue;
      const std::string_view routing = child.attribute("routing").value();
      if (routing == "Floyd" || routing == "Dijkstra" || routing == "DijkstraCache") read_graph_zone(child);
      read_zones(child);
    }
  }

  void read_tree(const pugi::xml_node& cluster) {
    const std::string_view id = cluster.attribute("id").value();
    if (!cluster.attribute("limiter_link").empty()) {
      bad_input("routing", "{}: cluster {} has a limiter_link, which a chosen way cannot pass; leave out the routing",
                path_, id);
    }
    const std::string prefix = cluster.attribute("prefix").value();
    const std::string suffix = cluster.attribute("suffix").value();
    const auto radical = parse_radical(cluster.attribute("radical").value(), std::numeric_limits<std::uint32_t>::max());
    if (!radical.has_value()) internal_error("radical of cluster {} passed the check of the platform", id);
    std::unordered_map<std::uint32_t, FabricVertex> nodes;
    for (std::uint32_t place = 0; place < radical->size(); ++place) {
      nodes.emplace(place, add_host(fmt::format("{}{}{}", prefix, (*radical)[place], suffix)));
    }
    const auto vertex = [&](std::uint32_t node) {
      const auto [known, added] = nodes.try_emplace(node, 0);
      if (added) known->second = add_vertex(true);
      return known->second;
    };
    const double count = topology_links("FAT_TREE", cluster.attribute("topo_parameters").value());
    for (double link = 0; link < count; ++link, ++tree_links_read_) {
      const auto found = tree_links_.find(tree_links_read_);
      if (found == tree_links_.end() || !found->second.up.has_value() || !found->second.down.has_value()) {
        internal_error("{}: link {} of the fat trees is not there", path_, tree_links_read_);
      }
      const FabricVertex child = vertex(found->second.child);
      const FabricVertex above = vertex(found->second.parent);
      graph_.edges.push_back({child, above, *found->second.up});
      graph_.edges.push_back({above, child, *found->second.down});
    }
  }

  /// Hosts and routers are joined by routes; a route of several links passes points that are nothing else.
  void read_graph_zone(const pugi::xml_node& zone) {
    std::unordered_map<std::string_view, FabricVertex> points;
    for (const pugi::xml_node& child : zone.children()) {
      const std::string_view tag = child.name();
      const char* const id = child.attribute("id").value();
      if (tag == "host") points.emplace(id, add_host(id));
      if (tag == "router") points.emplace(id, add_vertex(true));
    }
    for (const pugi::xml_node& route : zone.children("route")) {
      const auto source = points.find(route.attribute("src").value());
      const auto destination = points.find(route.attribute("dst").value());
      if (source == points.end() || destination == points.end()) continue;  // of hosts that a cabinet makes
      read_route(route, source->second, destination->second);
    }
  }

  void read_route(const pugi::xml_node& route, FabricVertex source, FabricVertex destination) {
    if (source == destination) return;
    const std::string_view symmetrical = route.attribute("symmetrical").as_string("YES");
    const bool both = symmetrical == "YES" || symmetrical == "yes";
    const auto parts = route.children("link_ctn");
    const auto links = std::distance(parts.begin(), parts.end());
    FabricVertex at = source;
    for (auto part = parts.begin(); part != parts.end(); ++part) {
      const bool last = std::distance(parts.begin(), part) + 1 == links;
      const FabricVertex next = last ? destination : add_vertex(true);
      const std::string name = part->attribute("id").value();
      const std::string_view direction = part->attribute("direction").as_string("NONE");
      graph_.edges.push_back({at, next, link_of(name, direction, false)});
      if (both) graph_.edges.push_back({next, at, link_of(name, direction, true)});
      at = next;
    }
  }

  /// The link in its direction of the file, or in the other one; as SimGrid, the same link if none is given.
  LinkId link_of(std::string name, std::string_view direction, bool turned) const {
    if (direction == "UP" || direction == "DOWN") {
      name += (direction == "UP") != turned ? "_UP" : "_DOWN";
    }
    const auto found = ids_.find(name);
    if (found == ids_.end()) internal_error("link '{}' passed the check of the platform", name);
    return found->second;
  }

  /// bypassRoute from host to host, and properties `route:HOST:HOST`, which hold for both directions.
  void read_own_ways(const pugi::xml_node& parent) {
    for (const pugi::xml_node& child : parent.children()) {
      const std::string_view tag = child.name();
      if (tag == "bypassRoute") {
        add_own_way(child.attribute("src").value(), child.attribute("dst").value(), false);
      } else if (tag == "prop") {
        const std::vector<std::string_view> parts = split(child.attribute("id").value(), ':');
        if (parts.size() == 3 && parts[0] == "route") add_own_way(parts[1], parts[2], true);
      } else if (tag == "zone" || tag == "AS") {
        read_own_ways(child);
      }
    }
  }

  void add_own_way(std::string_view from, std::string_view to, bool both) {
    const auto source = graph_.hosts.find(std::string(from));
    const auto destination = graph_.hosts.find(std::string(to));
    if (source == graph_.hosts.end() || destination == graph_.hosts.end()) return;
    graph_.own_ways.insert(fabric_pair(source->second, destination->second));
    if (both) graph_.own_ways.insert(fabric_pair(destination->second, source->second));
  }

  const std::string& path_;
  std::unordered_map<std::string, LinkId> ids_;
  std::map<std::uint32_t, TreeLink> tree_links_;  // by number
  std::uint32_t tree_links_read_ = 0;
  FabricGraph graph_;
};

}  // namespace

FabricGraph read_fabric_graph(const std::string& path, std::span<const Link> links) {
  return GraphReader(path, links).read();
}

}  // namespace hcclsim::sim
