#include "study/platform/link_sources.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace hcclsim::study {
namespace {

/// "HCCS 14 GB/s (10..19.3)": used speed and range, if it has one.
std::string speed_of(const sim::Link& link) {
  const bool fixed = link.low == link.bandwidth && link.high == link.bandwidth;
  const std::string range = fixed ? "" : fmt::format(" ({:g}..{:g})", link.low / giga, link.high / giga);
  if (link.read == link.write) return fmt::format("{} {:g} GB/s{}", title_of(link.kind), link.bandwidth / giga, range);
  return fmt::format("{} read {:g} write {:g} GB/s{}", title_of(link.kind), link.read / giga, link.write / giga, range);
}

/// Whether --set changed something that the file says of the link or of its kind.
bool is_edited(const sim::Link& link, std::span<const sim::PlatformEdit> edits) {
  std::string id = link.name;
  for (const std::string_view direction : {"_UP", "_DOWN"}) {
    if (id.ends_with(direction)) id.resize(id.size() - direction.size());
  }
  constexpr std::string_view of_links = "link[";
  return std::any_of(edits.begin(), edits.end(), [&](const sim::PlatformEdit& edit) {
    if (edit.target.starts_with(fmt::format("platform.link.{}.", name_of(link.kind)))) return true;
    if (!edit.target.starts_with(of_links)) return false;
    const std::size_t end = edit.target.rfind(']');
    const std::string pattern = edit.target.substr(of_links.size(), end - of_links.size());
    return ::fnmatch(pattern.c_str(), id.c_str(), 0) == 0;
  });
}

}  // namespace

std::string_view title_of(sim::LinkKind kind) {
  constexpr std::array<std::string_view, 6> titles{"HCCS", "PCIe", "SIO", "UB", "RoCE", "other"};
  return titles.at(static_cast<std::size_t>(kind));
}

std::vector<sim::LinkId> links_between(sim::Cluster& cluster, std::span<const Rank> ranks) {
  std::vector<sim::LinkId> links;
  const std::uint32_t first_server = cluster.npu(ranks.front()).server;
  std::uint32_t server = first_server;
  for (const Rank rank : ranks.subspan(1)) {
    if (const std::uint32_t last = std::exchange(server, cluster.npu(rank).server);
        server != first_server && server == last) {
      continue;
    }
    const sim::Route& route = cluster.route(ranks.front(), rank);
    links.insert(links.end(), route.links.begin(), route.links.end());
  }
  return links;
}

std::vector<LinkSource> link_sources(sim::Cluster& cluster, std::span<const Rank> ranks) {
  std::map<sim::LinkKind, LinkSource> kinds;
  for (const sim::LinkId id : links_between(cluster, ranks)) {
    const sim::Link& link = cluster.links()[id];
    if (link.kind == sim::LinkKind::other || kinds.contains(link.kind)) continue;
    const auto source = cluster.property(fmt::format("link.{}.source", name_of(link.kind)));
    kinds[link.kind] = {speed_of(link),
                        is_edited(link, cluster.edits()) ? set_by_user : source.value_or("platform file")};
  }
  std::vector<LinkSource> sources;
  for (auto& [kind, source] : kinds) sources.push_back(std::move(source));
  return sources;
}

}  // namespace hcclsim::study
