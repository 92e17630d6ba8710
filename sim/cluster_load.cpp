#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/cluster.hpp"
#include "sim/simgrid_engine.hpp"

// What Cluster takes from the zones, hosts and links that SimGrid has read: docs/formats.md lists the properties. Their
// values have been checked before (sim/platform/check.hpp).
namespace hcclsim::sim {
namespace {

using simgrid::kernel::routing::NetZoneImpl;
using simgrid::s4u::NetZone;

/// Routes to a host itself, which SimGrid adds: no transfer between NPUs uses it.
constexpr std::string_view loopback = "__loopback__";

LinkKind parse_kind(std::string_view value) {
  for (int kind = 0; kind <= static_cast<int>(LinkKind::other); ++kind) {
    if (value == name_of(static_cast<LinkKind>(kind))) return static_cast<LinkKind>(kind);
  }
  internal_error("kind of link '{}' passed the check of the platform", value);
}

std::uint32_t checked_number(std::string_view text) {
  const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(text);
  if (!number.has_value()) internal_error("number '{}' passed the check of the platform", text);
  return *number;
}

/// The number at the end of a name, such as 13 of "npu-13".
std::uint32_t number_in(std::string_view name) {
  return checked_number(name.substr(name.find_last_not_of("0123456789") + 1));
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

/// What the outermost zone says of the links of one kind.
struct KindSpeeds {
  std::optional<BytesPerSecond> nominal, low, high, write, read;
};

/// An NPU that was found in the file and does not have its rank yet.
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
      found.push_back(
          {{.name = point->get_name(), .soc = soc, .properties = {properties.begin(), properties.end()}}, host, &zone});
    }
  }
}

/// Sets server and device: from the host's properties, else from the number in its name if the outermost zone has
/// `npus_per_server`, else from the zones: one server per zone.
void number(std::uint32_t npus_per_server, std::vector<Found>& found) {
  std::map<const NetZoneImpl*, std::pair<std::uint32_t, std::uint32_t>> zones;  // server and NPUs so far
  for (Found& each : found) {
    Npu& npu = each.npu;
    const auto server = npu.properties.find("server");
    const auto device = npu.properties.find("device");
    const auto pod = npu.properties.find("super_pod");
    if (pod != npu.properties.end()) npu.super_pod = checked_number(pod->second);
    if (server != npu.properties.end() && device != npu.properties.end()) {
      npu.server = checked_number(server->second);
      npu.device = checked_number(device->second);
    } else if (npus_per_server > 0) {
      npu.server = number_in(npu.name) / npus_per_server;
      npu.device = number_in(npu.name) % npus_per_server;
    } else {
      const auto number_of_zone = static_cast<std::uint32_t>(zones.size());
      auto& [zone_server, npus] = zones.try_emplace(each.zone, number_of_zone, 0).first->second;
      npu.server = zone_server;
      npu.device = npus++;
    }
  }
}

}  // namespace

void Cluster::read_links() {
  const LinkKind usual_kind = parse_kind(property("fabric.kind").value_or("other"));
  std::vector<KindSpeeds> kinds;
  for (int kind = 0; kind <= static_cast<int>(LinkKind::other); ++kind) {
    const auto speed = [&](std::string_view key) -> std::optional<BytesPerSecond> {
      const auto text = property(fmt::format("link.{}.{}", name_of(static_cast<LinkKind>(kind)), key));
      if (!text) return std::nullopt;
      return parse_bandwidth(*text);
    };
    kinds.push_back({speed("nominal"), speed("low"), speed("high"), speed("write"), speed("read")});
  }
  for (auto* const source : engine().get_all_links()) {
    if (source->get_name() == loopback) continue;
    Link link;
    link.name = source->get_name();
    link.shared = source->get_sharing_policy() != simgrid::s4u::Link::SharingPolicy::FATPIPE;
    const char* const kind = link_property(*source, "kind");
    link.kind = kind == nullptr ? usual_kind : parse_kind(kind);
    link.bandwidth = source->get_bandwidth();
    link.latency = source->get_latency();
    const auto speed = [&](const char* key, const std::optional<BytesPerSecond>& of_kind) {
      const char* const own = link_property(*source, key);
      return own == nullptr ? of_kind.value_or(link.bandwidth) : parse_bandwidth(own);
    };
    const KindSpeeds& usual = kinds[static_cast<std::size_t>(link.kind)];
    link.nominal = speed("nominal", usual.nominal);
    link.low = speed("low", usual.low);
    link.high = speed("high", usual.high);
    link.write = speed("write", usual.write);
    link.read = speed("read", usual.read);
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
  if (found.empty()) internal_error("{}: a platform without NPUs passed its check", path_);
  const auto npus_per_server = property("npus_per_server");
  number(npus_per_server ? checked_number(*npus_per_server) : 0, found);
  const auto place = [](const Found& each) { return std::pair(each.npu.server, each.npu.device); };
  std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) { return place(a) < place(b); });
  std::uint32_t last = found.front().npu.server;
  for (Found& each : found) {
    if (each.npu.server != last) ++servers_;
    last = each.npu.server;
    each.npu.server = servers_;
    each.npu.number = size();
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
  if (bypass_zones_.empty()) return std::nullopt;
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
  for (const std::string_view part : split(text, ' ')) {
    if (part.empty()) continue;
    std::string name(part);
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
