#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <tuple>

#include "base/error.hpp"
#include "sim/cluster.hpp"
#include "sim/simgrid_engine.hpp"

// What Cluster takes from the zones, hosts and links that SimGrid has read: docs/formats.md lists the properties.
namespace hcclsim::sim {
namespace {

using simgrid::kernel::routing::NetZoneImpl;
using simgrid::s4u::NetZone;

/// Routes to a host itself, which SimGrid adds: no transfer between NPUs uses it.
constexpr std::string_view loopback = "__loopback__";

LinkKind parse_kind(const std::string& path, std::string_view what, std::string_view value) {
  for (int kind = 0; kind <= static_cast<int>(LinkKind::other); ++kind) {
    if (value == name_of(static_cast<LinkKind>(kind))) return static_cast<LinkKind>(kind);
  }
  bad_input("platform", "{}: {} is '{}'; accepted are hccs, pcie, sio, ub, roce and other", path, what, value);
}

BytesPerSecond parse_speed(const std::string& path, std::string_view what, std::string_view value) {
  BytesPerSecond speed = 0;
  try {
    speed = parse_bandwidth(value);
  } catch (const Error& error) {
    bad_input("platform", "{}: {}: {}", path, what, error.what());
  }
  if (speed <= 0) bad_input("platform", "{}: {} is '{}', must be positive", path, what, value);
  return speed;
}

std::uint32_t parse_number(const std::string& path, std::string_view what, std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    bad_input("platform", "{}: {} is '{}', must be an integer of at least 0", path, what, text);
  }
  return number;
}

/// The number at the end of a name, such as 13 of "npu-13".
std::uint32_t number_in(const std::string& path, std::string_view name) {
  const std::size_t last_other = name.find_last_not_of("0123456789");
  const std::size_t first = last_other == std::string_view::npos ? 0 : last_other + 1;
  return parse_number(path, fmt::format("number at the end of host name '{}' (for npus_per_server)", name),
                      name.substr(first));
}

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

/// An NPU on its way to its rank.
struct Found {
  Npu npu;
  simgrid::s4u::Host* host = nullptr;
  const NetZoneImpl* zone = nullptr;
};

/// The hosts with property `npu` in the order of the file.
void collect(const NetZoneImpl& zone, std::vector<Found>& found) {
  // A zone lists its hosts, routers and sub-zones in the order of the file; the sub-zones as points and as children.
  std::size_t child = 0;
  for (const auto* const point : zone.get_vertices()) {
    if (point->is_netzone()) {
      collect(*zone.get_children().at(child++), found);
    } else if (point->is_host()) {
      auto* const host = engine().host_by_name(point->get_name());
      const char* const soc = host->get_property("npu");
      if (soc == nullptr) continue;
      const auto& properties = *host->get_properties();
      found.push_back({{point->get_name(), soc, 0, 0, {properties.begin(), properties.end()}}, host, &zone});
    }
  }
}

/// Sets server and device: from the host's properties, else from the number in its name if the outermost zone has
/// `npus_per_server`, else from the zones: one server per zone.
void number(const std::string& path, std::uint32_t npus_per_server, std::vector<Found>& found) {
  std::map<const NetZoneImpl*, std::pair<std::uint32_t, std::uint32_t>> zones;  // server and NPUs so far
  for (Found& each : found) {
    Npu& npu = each.npu;
    auto& [zone_server, in_zone] =
        zones.try_emplace(each.zone, static_cast<std::uint32_t>(zones.size()), 0).first->second;
    npu.server = zone_server;
    npu.device = in_zone++;
    const auto server = npu.properties.find("server");
    const auto device = npu.properties.find("device");
    const bool complete = server != npu.properties.end() && device != npu.properties.end();
    if (npus_per_server > 0 && !complete) {
      const std::uint32_t position = number_in(path, npu.name);
      npu.server = position / npus_per_server;
      npu.device = position % npus_per_server;
    }
    const auto read = [&](const auto& property, std::uint32_t& value) {
      if (property == npu.properties.end()) return;
      value =
          parse_number(path, fmt::format("property '{}' of host '{}'", property->first, npu.name), property->second);
    };
    read(server, npu.server);
    read(device, npu.device);
  }
}

}  // namespace

void Cluster::read_links() {
  const auto root_value = [&](LinkKind kind, std::string_view key) {
    return property(fmt::format("link.{}.{}", name_of(kind), key));
  };
  const LinkKind usual_kind =
      parse_kind(path_, "property 'fabric.kind' of the outermost zone", property("fabric.kind").value_or("other"));
  // What the outermost zone says of each kind, read once.
  struct KindValues {
    std::optional<BytesPerSecond> nominal, low, high, write, read;
  };
  std::vector<KindValues> kinds;
  for (int i = 0; i <= static_cast<int>(LinkKind::other); ++i) {
    const auto kind = static_cast<LinkKind>(i);
    const auto value = [&](std::string_view key) -> std::optional<BytesPerSecond> {
      const auto text = root_value(kind, key);
      if (!text) return std::nullopt;
      return parse_speed(path_, fmt::format("property 'link.{}.{}'", name_of(kind), key), *text);
    };
    kinds.push_back({value("nominal"), value("low"), value("high"), value("write"), value("read")});
  }

  for (auto* const source : engine().get_all_links()) {
    if (source->get_name() == loopback) continue;
    Link link;
    link.name = source->get_name();
    const auto policy = source->get_sharing_policy();
    using Policy = simgrid::s4u::Link::SharingPolicy;
    if (policy == Policy::WIFI || policy == Policy::NONLINEAR) {
      bad_input("platform", "{}: link '{}' has a sharing policy other than SHARED, FATPIPE and SPLITDUPLEX", path_,
                link.name);
    }
    link.shared = policy != Policy::FATPIPE;
    const char* const kind = link_property(*source, "kind");
    link.kind =
        kind == nullptr ? usual_kind : parse_kind(path_, fmt::format("property 'kind' of link '{}'", link.name), kind);
    link.bandwidth = source->get_bandwidth();
    if (!(link.bandwidth > 0)) bad_input("platform", "{}: link '{}' has no positive bandwidth", path_, link.name);
    const KindValues& usual = kinds[static_cast<std::size_t>(link.kind)];
    const auto value = [&](const char* key, const std::optional<BytesPerSecond>& of_kind) {
      const char* const own = link_property(*source, key);
      if (own == nullptr) return of_kind.value_or(link.bandwidth);
      return parse_speed(path_, fmt::format("property '{}' of link '{}'", key, link.name), own);
    };
    link.nominal = value("nominal", usual.nominal);
    link.low = value("low", usual.low);
    link.high = value("high", usual.high);
    link.write = value("write", usual.write);
    link.read = value("read", usual.read);
    link.latency = source->get_latency();
    if (!(link.latency >= 0)) bad_input("platform", "{}: link '{}' has a negative latency", path_, link.name);
    // SimGrid shares bandwidth by latency, which is not max-min fair: latencies are paid before the bytes flow.
    if (link.latency > 0) source->set_latency(0);
    links_.push_back(std::move(link));
    simgrid_links_.push_back(source);
  }
  for (LinkId id = 0; id < links_.size(); ++id) link_ids_.emplace_back(simgrid_links_[id], id);
  std::sort(link_ids_.begin(), link_ids_.end());
}

void Cluster::read_npus() {
  std::vector<Found> found;
  collect(*engine().get_netzone_root()->get_impl(), found);
  if (found.empty()) {
    bad_input("platform",
              "{}: no host has a property npu; an NPU is a host with e.g. <prop id=\"npu\" value=\"Ascend910A\"/>",
              path_);
  }
  const auto text = property("npus_per_server");
  const std::uint32_t npus_per_server =
      text ? parse_number(path_, "property 'npus_per_server' of the outermost zone", *text) : 0;
  number(path_, npus_per_server, found);
  const auto place = [](const Found& each) { return std::pair(each.npu.server, each.npu.device); };
  std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) { return place(a) < place(b); });
  const auto twice = std::adjacent_find(found.begin(), found.end(),
                                        [&](const Found& a, const Found& b) { return place(a) == place(b); });
  if (twice != found.end()) {
    bad_input("platform", "{}: hosts '{}' and '{}' are both device {} of server {}", path_, twice->npu.name,
              std::next(twice)->npu.name, twice->npu.device, twice->npu.server);
  }
  std::uint32_t last = found.front().npu.server;
  for (Found& each : found) {
    if (each.npu.server != last) ++servers_;
    last = each.npu.server;
    each.npu.server = servers_;
    npus_.push_back(std::move(each.npu));
    hosts_.push_back(each.host);
  }
  ++servers_;
}

void Cluster::find_bypass_zones() {
  const auto visit = [&](const auto& self, const NetZone& zone) -> void {
    for (const auto& [key, value] : *zone.get_properties()) {
      if (!key.starts_with("route:")) continue;
      bypass_zones_.push_back(&zone);
      break;
    }
    for (const NetZone* const child : zone.get_children()) self(self, *child);
  };
  visit(visit, *engine().get_netzone_root());
}

std::optional<std::vector<LinkId>> Cluster::bypass(Rank source, Rank destination) const {
  const auto& from = npus_[source].name;
  const auto& to = npus_[destination].name;
  const auto find = [&](const std::string& key) -> const char* {
    for (const NetZone* const zone : bypass_zones_) {
      if (const char* const value = zone->get_property(key)) return value;
    }
    return nullptr;
  };
  std::string key = fmt::format("route:{}:{}", from, to);
  const char* text = find(key);
  const bool reverse = text == nullptr;
  if (reverse) {
    key = fmt::format("route:{}:{}", to, from);
    text = find(key);
    if (text == nullptr) return std::nullopt;
  }
  std::vector<LinkId> way;
  const std::string_view list = text;
  for (std::size_t end = 0, start = list.find_first_not_of(' '); start != std::string_view::npos;
       start = list.find_first_not_of(' ', end)) {
    end = std::min(list.find(' ', start), list.size());
    std::string name(list.substr(start, end - start));
    // "hccs-0-1:UP" is SimGrid's link hccs-0-1_UP; the way back uses the other direction.
    if (const bool up = name.ends_with(":UP"); up || name.ends_with(":DOWN")) {
      name = name.substr(0, name.rfind(':')) + (up != reverse ? "_UP" : "_DOWN");
    }
    const auto* const link = engine().link_by_name_or_null(name);
    const std::optional<LinkId> id = id_of(link);
    if (!id) bad_input("platform", "{}: property '{}' names link '{}', which does not exist", path_, key, name);
    way.push_back(*id);
  }
  if (reverse) std::reverse(way.begin(), way.end());
  if (way.empty()) bad_input("platform", "{}: property '{}' names no link", path_, key);
  return way;
}

}  // namespace hcclsim::sim
