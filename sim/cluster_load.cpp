#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/cluster.hpp"

// What Cluster makes of the hosts and links of its file: docs/formats.md lists the properties. Their
// values have been checked before (sim/platform/check.hpp).
namespace hcclsim::sim {
namespace {

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

/// What the outermost zone says of the links of one kind.
struct KindSpeeds {
  std::optional<BytesPerSecond> nominal, low, high, write, read;

  /// Whether their range is that of a link with this bandwidth. One that is slower or faster than all that is published
  /// of its kind has the figure that the file gives it, and no range.
  [[nodiscard]] bool holds(BytesPerSecond bandwidth) const {
    return low.value_or(bandwidth) <= bandwidth && bandwidth <= high.value_or(bandwidth);
  }
};

/// Whether the bandwidth of links that SimGrid makes for a <cluster> is the user's.
bool edits_clusters(std::span<const PlatformEdit> edits) {
  return std::ranges::any_of(edits, [](const PlatformEdit& edit) {
    return edit.target.starts_with("cluster[") && edit.target.ends_with("].bandwidth");
  });
}

/// An NPU that was found in the file and does not have its rank yet.
struct Found {
  Npu npu;
  std::uint32_t zone = 0;
};

/// Sets server and device: from the host's properties, else from the number in its name if the outermost zone has
/// `npus_per_server`, else from the zones: one server per zone.
void number(std::uint32_t npus_per_server, std::vector<Found>& found) {
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> zones;  // server and NPUs so far
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
  const bool edited_clusters = edits_clusters(edits_);
  source_->visit_links([&](const SourceLink& source) {
    Link link;
    link.name = source.name;
    link.shared = source.shared;
    link.kind = source.kind == nullptr ? usual_kind : parse_kind(source.kind);
    link.bandwidth = source.bandwidth;
    link.latency = source.latency;
    const auto speed = [&](const char* own, const std::optional<BytesPerSecond>& of_kind) {
      return own == nullptr ? of_kind.value_or(link.bandwidth) : parse_bandwidth(own);
    };
    const KindSpeeds& usual = kinds[static_cast<std::size_t>(link.kind)];
    const bool has_range = usual.holds(link.bandwidth) && !(edited_clusters && source.kind == nullptr);
    link.nominal = speed(source.nominal, usual.nominal);
    link.low = speed(source.low, has_range ? usual.low : std::nullopt);
    link.high = speed(source.high, has_range ? usual.high : std::nullopt);
    link.write = speed(source.write, usual.write);
    link.read = speed(source.read, usual.read);
    links_.push_back(std::move(link));
  });
  for (LinkId id = 0; id < links_.size(); ++id) by_name_.push_back(id);
  std::ranges::sort(by_name_, {}, [this](LinkId id) -> std::string_view { return links_[id].name; });
}

void Cluster::read_hosts() {
  std::vector<Found> found;
  source_->visit_hosts([&](SourceHost host) {
    if (host.properties.contains("cpu")) cpus_.push_back({host.name, host.id});
    const auto soc = host.properties.find("npu");
    if (soc == host.properties.end()) return;
    Npu npu{
        .name = std::move(host.name), .soc = soc->second, .properties = std::move(host.properties), .host = host.id};
    found.push_back({std::move(npu), host.zone});
  });
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
    npus_.push_back(std::move(each.npu));
  }
  ++servers_;
}

void Cluster::read_route_properties() {
  std::map<std::string, HostId> hosts;
  source_->visit_route_properties([&](const std::string& key, const char* text) {
    if (hosts.empty()) {
      for (const Npu& npu : npus_) hosts.emplace(npu.name, npu.host);
    }
    const std::vector<std::string_view> parts = split(key, ':');
    const auto from = hosts.find(std::string(parts.at(1)));
    const auto to = hosts.find(std::string(parts.at(2)));
    if (from == hosts.end() || to == hosts.end()) return;  // no NPU asks for this way
    std::vector<LinkId> way = parse_way(key, text);
    ways_.emplace(std::pair(from->second, to->second), way);
    // The way back uses the other direction of each link.
    std::ranges::reverse(way);
    for (LinkId& link : way) link = opposite(link);
    ways_.emplace(std::pair(to->second, from->second), std::move(way));
  });
}

/// "pcie-0-4:UP hccs-4-5:UP"
std::vector<LinkId> Cluster::parse_way(const std::string& key, std::string_view text) const {
  std::vector<LinkId> way;
  for (const std::string_view part : split(text, ' ')) {
    if (part.empty()) continue;
    std::string name(part);
    if (const std::size_t colon = name.rfind(':'); colon != std::string::npos) name[colon] = '_';
    const std::optional<LinkId> id = id_of(name);
    if (!id) bad_input("platform", "{}: property '{}' names link '{}', which does not exist", path_, key, name);
    way.push_back(*id);
  }
  if (way.empty()) bad_input("platform", "{}: property '{}' names no link", path_, key);
  return way;
}

/// The same link in the other direction; a link without directions is its own.
LinkId Cluster::opposite(LinkId link) const {
  const std::string& name = links_[link].name;
  const bool up = name.ends_with("_UP");
  if (!up && !name.ends_with("_DOWN")) return link;
  return id_of(name.substr(0, name.rfind('_')) + (up ? "_DOWN" : "_UP")).value_or(link);
}

}  // namespace hcclsim::sim
