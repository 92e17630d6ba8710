#include "sim/simgrid/source.hpp"

#include <simgrid/Exception.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "sim/cluster.hpp"
#include "sim/simgrid/engine.hpp"

namespace hcclsim::sim {
namespace {

using simgrid::kernel::routing::NetZoneImpl;
using simgrid::s4u::NetZone;

/// Routes to a host itself, which SimGrid adds: no transfer between NPUs uses it.
constexpr std::string_view loopback = "__loopback__";

/// A property of a link. Those of a SPLITDUPLEX link are kept with the pair, not with its two directions.
const char* link_property(const simgrid::s4u::Link& link, const char* key) {
  if (const char* const own = link.get_property(key)) return own;
  const std::string& name = link.get_name();
  const std::size_t suffix = name.rfind('_');
  if (!name.ends_with("_UP") && !name.ends_with("_DOWN")) return nullptr;
  const std::string pair = name.substr(0, suffix);
  if (engine().get_netzone_root()->get_impl()->get_split_duplex_link_by_name_or_null(pair) == nullptr) return nullptr;
  return engine().split_duplex_link_by_name(pair)->get_property(key);
}

void make_port_hosts() {
  NetZone* ports = nullptr;
  for (const simgrid::s4u::Host* const host : engine().get_all_hosts()) {
    if (host->get_property("roce") == nullptr) continue;
    if (ports == nullptr) {
      ports = simgrid::s4u::create_empty_zone("RoCE ports");
      ports->set_parent(engine().get_netzone_root());
    }
    ports->create_host(port_host_of(host->get_name()), 1);  // transfers alone use it: any speed will do
  }
}

class SimgridSource final : public PlatformSource {
 public:
  SimgridSource() {
    std::uint32_t zones = 0;
    collect(*engine().get_netzone_root()->get_impl(), zones);
    for (simgrid::s4u::Link* const link : engine().get_all_links()) {
      if (link->get_name() == loopback) continue;
      ids_.emplace_back(link, static_cast<LinkId>(links_.size()));
      links_.push_back({link, link->get_latency()});
      if (links_.back().latency > 0) link->set_latency(0);
    }
    std::sort(ids_.begin(), ids_.end());
  }

  [[nodiscard]] std::map<std::string, std::string> properties() const override {
    const auto& properties = *engine().get_netzone_root()->get_properties();
    return {properties.begin(), properties.end()};
  }

  void visit_hosts(const std::function<void(SourceHost)>& visit) const override {
    for (HostId id = 0; id < hosts_.size(); ++id) {
      const auto& properties = *hosts_[id].host->get_properties();
      visit({id, hosts_[id].host->get_name(), hosts_[id].zone, {properties.begin(), properties.end()}});
    }
  }

  void visit_links(const std::function<void(const SourceLink&)>& visit) const override {
    for (const TimedLink& timed : links_) {
      const simgrid::s4u::Link& from = *timed.link;
      SourceLink link{.name = from.get_name(),
                      .shared = from.get_sharing_policy() != simgrid::s4u::Link::SharingPolicy::FATPIPE,
                      .bandwidth = from.get_bandwidth(),
                      .latency = timed.latency};
      set_properties(link, [&from](const char* key) { return link_property(from, key); });
      visit(link);
    }
  }

  void visit_route_properties(const std::function<void(const std::string&, const char*)>& visit) const override {
    visit_route_properties(*engine().get_netzone_root(), visit);
  }

  [[nodiscard]] std::vector<LinkId> way(HostId from, HostId to) override {
    std::vector<simgrid::s4u::Link*> links;
    try {
      hosts_[from].host->route_to(hosts_[to].host, links, nullptr);
    } catch (const std::exception&) {
      links.clear();  // SimGrid has no exception for it: a gateway without a route, for example, is an out_of_range
    }
    std::vector<LinkId> way;
    for (const simgrid::s4u::Link* const link : links) {
      const auto found = std::lower_bound(ids_.begin(), ids_.end(), std::pair(link, LinkId{0}));
      if (found == ids_.end() || found->first != link) internal_error("link '{}' is unknown", link->get_name());
      way.push_back(found->second);
    }
    return way;
  }

 private:
  struct FoundHost {
    simgrid::s4u::Host* host = nullptr;
    std::uint32_t zone = 0;
  };
  struct TimedLink {
    simgrid::s4u::Link* link = nullptr;
    Seconds latency = 0;  // of the file
  };

  /// The hosts with property `npu` or `cpu` in the order of the file.
  // NOLINTNEXTLINE(misc-no-recursion): as deep as zones stand in one another
  void collect(const NetZoneImpl& zone, std::uint32_t& zones) {
    const std::uint32_t number = zones++;
    // A zone lists its hosts, routers and sub-zones in the order of the file; the sub-zones as points and as children.
    std::size_t child = 0;
    for (const auto* const point : zone.get_vertices()) {
      if (point->is_netzone()) {
        collect(*zone.get_children().at(child++), zones);
      } else if (point->is_host()) {
        auto* const host = engine().host_by_name(point->get_name());
        if (host->get_property("npu") == nullptr && host->get_property("cpu") == nullptr) continue;
        hosts_.push_back({host, number});
      }
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as zones stand in one another
  static void visit_route_properties(const NetZone& zone,
                                     const std::function<void(const std::string&, const char*)>& visit) {
    for (const auto& [key, value] : *zone.get_properties()) {
      if (key.starts_with("route:")) visit(key, value.c_str());
    }
    for (const NetZone* const child : zone.get_children()) visit_route_properties(*child, visit);
  }

  std::vector<FoundHost> hosts_;                                   // by HostId
  std::vector<TimedLink> links_;                                   // by LinkId
  std::vector<std::pair<const simgrid::s4u::Link*, LinkId>> ids_;  // sorted
};

}  // namespace

std::string port_host_of(const std::string& npu) { return npu + " RoCE"; }

std::unique_ptr<PlatformSource> load_into_simgrid(const Cluster& cluster) {
  const std::string& path = cluster.path();
  if (engine().get_netzone_root() != nullptr) internal_error("{}: this process has loaded a platform already", path);
  std::optional<EditedPlatform> edited;
  if (!cluster.edits().empty()) edited.emplace(path, cluster.edits());
  try {
    engine().load_platform(edited.has_value() ? edited->path() : path);
    make_port_hosts();
    // Gives routers of star zones their empty way to the centre, without which routes through them are not found.
    engine().seal_platform();
  } catch (const simgrid::Exception& error) {
    bad_input("platform", "{}: {}", path, error.what());
  } catch (const std::invalid_argument& error) {
    bad_input("platform", "{}: {}", path, error.what());
  }
  return std::make_unique<SimgridSource>();
}

}  // namespace hcclsim::sim
