#include "study/platform/link_sources.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
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

/// Returns whether --set changed the speed of the link, or the speeds that the file gives its kind.
bool is_edited(const sim::Link& link, std::span<const sim::PlatformEdit> edits) {
  std::string id = link.name;
  for (const std::string_view direction : {"_UP", "_DOWN"}) {
    if (id.ends_with(direction)) id.resize(id.size() - direction.size());
  }
  constexpr std::string_view of_links = "link[";
  return std::any_of(edits.begin(), edits.end(), [&](const sim::PlatformEdit& edit) {
    if (edit.target.starts_with(fmt::format("platform.link.{}.", name_of(link.kind)))) return true;
    if (!edit.target.starts_with(of_links) || edit.target.ends_with("].latency")) return false;
    const std::size_t end = edit.target.rfind(']');
    const std::string pattern = edit.target.substr(of_links.size(), end - of_links.size());
    return ::fnmatch(pattern.c_str(), id.c_str(), 0) == 0;
  });
}

std::string source_of(const sim::Link& link, sim::Cluster& cluster) {
  constexpr const char* of_file = "platform file";
  if (is_edited(link, cluster.edits())) return set_by_user;
  const auto of_kind = [&](std::string_view key) {
    return cluster.property(fmt::format("link.{}.{}", name_of(link.kind), key));
  };
  const bool leaves_range = of_kind("low").has_value() && link.low == link.high;
  return leaves_range ? of_file : of_kind("source").value_or(of_file);
}

/// Returns the links on all routes between few ranks; between many ranks the links of links_between().
std::vector<sim::LinkId> seen_links(sim::Cluster& cluster, std::span<const Rank> ranks) {
  constexpr std::size_t few = 64;
  std::vector<sim::LinkId> links = links_between(cluster, ranks);
  if (ranks.size() > few) return links;
  for (const Rank from : ranks) {
    for (const Rank to : ranks) {
      if (from == to) continue;
      const sim::Route& route = cluster.route(from, to);
      links.insert(links.end(), route.links.begin(), route.links.end());
    }
  }
  return links;
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
  std::map<sim::LinkKind, std::vector<LinkSource>> kinds;
  std::vector<bool> seen(cluster.links().size(), false);
  for (const sim::LinkId id : seen_links(cluster, ranks)) {
    const sim::Link& link = cluster.links()[id];
    if (link.kind == sim::LinkKind::other || seen[id]) continue;
    seen[id] = true;
    LinkSource source{speed_of(link), source_of(link, cluster)};
    std::vector<LinkSource>& of_kind = kinds[link.kind];
    if (std::ranges::find(of_kind, source) == of_kind.end()) of_kind.push_back(std::move(source));
  }
  std::vector<LinkSource> sources;
  for (auto& [kind, of_kind] : kinds) std::ranges::move(of_kind, std::back_inserter(sources));
  return sources;
}

}  // namespace hcclsim::study
