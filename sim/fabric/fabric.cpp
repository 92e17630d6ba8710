#include "sim/fabric/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/counter_random.hpp"
#include "base/error.hpp"

namespace hcclsim::sim {
namespace {

/// Sorts edges by a vertex and returns where those of each vertex begin.
std::vector<std::uint32_t> group_edges(std::vector<FabricEdge>& edges, FabricVertex FabricEdge::*by,
                                       std::size_t vertices) {
  std::stable_sort(edges.begin(), edges.end(),
                   [by](const FabricEdge& a, const FabricEdge& b) { return a.*by < b.*by; });
  std::vector<std::uint32_t> first(vertices + 1, 0);
  for (const FabricEdge& edge : edges) ++first[edge.*by + 1];
  for (std::size_t vertex = 0; vertex < vertices; ++vertex) first[vertex + 1] += first[vertex];
  return first;
}

/// Which of `ways` ways a switch takes, from switch to switch of one way.
class Choice {
 public:
  Choice(const Routing& routing, FabricVertex source, FabricVertex destination, std::uint32_t number,
         std::uint32_t queue_pair)
      : by_hash_(routing.kind == RoutingKind::ecmp),
        number_(number),
        hash_(counter_bits(routing.seed, fabric_pair(source, destination), queue_pair)) {}

  std::uint32_t of(std::uint32_t ways, FabricVertex at) {
    if (by_hash_) return static_cast<std::uint32_t>(mix_bits(hash_ ^ at) % ways);
    const std::uint32_t way = number_ % ways;
    number_ /= ways;
    return way;
  }

 private:
  bool by_hash_;
  std::uint32_t number_;  // what is left of the destination's
  std::uint64_t hash_;
};

/// Puts the links of the ways between two ends into bundles, layer by layer.
class BundleSearch {
 public:
  explicit BundleSearch(std::span<const Link> links) : links_(links) {
    bundles_.representative.resize(links.size());
    for (LinkId link = 0; link < links.size(); ++link) bundles_.representative[link] = link;
    bundles_.links.resize(links.size(), 1);
    known_.resize(links.size());
  }

  /// Goes from points that are as many links away from the source of some pair to those behind the next links.
  std::vector<FabricVertex> cross(const std::vector<FabricVertex>& layer,
                                  const std::vector<std::vector<FabricEdge>>& next) {
    std::vector<LinkId> crossed;
    std::vector<FabricVertex> behind;
    for (const FabricVertex at : layer) {
      if (next[at].size() != next[layer.front()].size()) {
        refuse(next[layer.front()].front().link, next[at].front().link,
               "leave switches with different numbers of ways");
      }
      for (const FabricEdge& edge : next[at]) {
        crossed.push_back(edge.link);
        behind.push_back(edge.to);
      }
    }
    sort_out(crossed);
    add(crossed);
    sort_out(behind);
    return behind;
  }

  [[nodiscard]] LinkBundles take() { return std::move(bundles_); }

 private:
  static void sort_out(std::vector<std::uint32_t>& numbers) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  }

  void add(const std::vector<LinkId>& layer) {
    const LinkId first = layer.front();
    for (const LinkId link : layer) {
      const bool same = known_[link] == known_[first] && (!known_[link] || bundles_.representative[link] == first);
      if (!same) refuse(first, link, "are spread in part");
      if (!alike(links_[link], links_[first])) refuse(first, link, "are not alike");
    }
    if (known_[first] && bundles_.links[first] != layer.size()) refuse(first, left_out(layer), "are spread in part");
    for (const LinkId link : layer) {
      known_[link] = true;
      bundles_.representative[link] = first;
    }
    bundles_.links[first] = static_cast<std::uint32_t>(layer.size());
  }

  /// A link of the layer's bundle that is not in the layer.
  [[nodiscard]] LinkId left_out(const std::vector<LinkId>& layer) const {
    LinkId link = 0;
    while (bundles_.representative[link] != layer.front() || std::ranges::binary_search(layer, link)) ++link;
    return link;
  }

  static bool alike(const Link& one, const Link& other) {
    return one.bandwidth == other.bandwidth && one.latency == other.latency && one.kind == other.kind &&
           one.shared == other.shared && one.low == other.low && one.high == other.high && one.write == other.write &&
           one.read == other.read;
  }

  [[noreturn]] void refuse(LinkId one, LinkId other, std::string_view why) const {
    bad_input("routing",
              "routing ideal spreads bytes alike over all ways that cost the same; of this fabric the links {} and {} "
              "{}",
              links_[one].name, links_[other].name, why);
  }

  std::span<const Link> links_;
  LinkBundles bundles_;
  std::vector<bool> known_;
};

}  // namespace

Fabric::Fabric(FabricGraph graph) : graph_(std::move(graph)) {
  const std::size_t vertices = graph_.is_switch.size();
  edges_ = std::exchange(graph_.edges, {});
  arriving_ = edges_;
  first_edge_ = group_edges(edges_, &FabricEdge::from, vertices);
  first_arriving_ = group_edges(arriving_, &FabricEdge::to, vertices);
  distances_.resize(vertices);
  number_hosts();
}

void Fabric::number_hosts() {
  std::vector<std::pair<FabricVertex, FabricVertex>> hosts;  // with their switches
  for (FabricVertex vertex = 0; vertex < graph_.is_switch.size(); ++vertex) {
    if (!graph_.is_switch[vertex]) hosts.emplace_back(attachment(vertex), vertex);
  }
  std::sort(hosts.begin(), hosts.end());
  number_.resize(graph_.is_switch.size());
  for (std::uint32_t number = 0; number < hosts.size(); ++number) number_[hosts[number].second] = number;
}

FabricVertex Fabric::find(const std::string& host) const {
  const auto found = graph_.hosts.find(host);
  return found == graph_.hosts.end() ? none : found->second;
}

FabricVertex Fabric::attachment(FabricVertex host) const {
  const std::span<const FabricEdge> edges = edges_of(host);
  const bool one =
      edges.size() == 1 && graph_.is_switch[edges.front().to] && first_arriving_[host + 1] - first_arriving_[host] == 1;
  return one ? edges.front().to : host;
}

const std::vector<std::uint32_t>& Fabric::distances_to(FabricVertex vertex) {
  std::vector<std::uint32_t>& distances = distances_[vertex];
  if (!distances.empty()) return distances;
  distances.assign(graph_.is_switch.size(), unreachable);
  distances[vertex] = 0;
  std::vector<FabricVertex> reached{vertex};
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const FabricVertex at = reached[next];
    if (at != vertex && !graph_.is_switch[at]) continue;  // hosts pass nothing on
    for (std::uint32_t i = first_arriving_[at]; i < first_arriving_[at + 1]; ++i) {
      const FabricVertex from = arriving_[i].from;
      if (distances[from] != unreachable) continue;
      distances[from] = distances[at] + 1;
      reached.push_back(from);
    }
  }
  return distances;
}

std::vector<LinkId> Fabric::way(FabricVertex source, FabricVertex destination, const Routing& routing,
                                std::uint32_t queue_pair) {
  std::vector<LinkId> links;
  if (graph_.own_ways.contains(fabric_pair(source, destination))) return links;
  const FabricVertex end = attachment(destination);
  const std::vector<std::uint32_t>& distance = distances_to(end);
  if (distance[source] == unreachable) return links;
  Choice choice(routing, source, destination, number_[destination], queue_pair);
  for (FabricVertex at = source; at != end;) {
    const auto on = [&](const FabricEdge& edge) { return leads_on(edge, end, distance); };
    const std::span<const FabricEdge> edges = edges_of(at);
    auto left = choice.of(static_cast<std::uint32_t>(std::count_if(edges.begin(), edges.end(), on)), at);
    const auto taken =
        std::find_if(edges.begin(), edges.end(), [&](const FabricEdge& edge) { return on(edge) && left-- == 0; });
    links.push_back(taken->link);
    at = taken->to;
  }
  if (end != destination) links.push_back(arriving_[first_arriving_[destination]].link);
  return links;
}

std::vector<FabricVertex> Fabric::ends() const {
  std::vector<FabricVertex> ends;
  for (FabricVertex vertex = 0; vertex < graph_.is_switch.size(); ++vertex) {
    if (!graph_.is_switch[vertex]) ends.push_back(attachment(vertex));
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

bool Fabric::has_choice() {
  const std::vector<FabricVertex> all = ends();
  return std::any_of(all.begin(), all.end(), [&](FabricVertex end) {
    const std::vector<std::uint32_t>& distance = distances_to(end);
    std::vector<bool> left(distance.size());  // by a link that leads on
    return std::any_of(edges_.begin(), edges_.end(), [&](const FabricEdge& edge) {
      if (!leads_on(edge, end, distance)) return false;
      return left[edge.from] || (left[edge.from] = true, false);
    });
  });
}

LinkBundles Fabric::bundles(std::span<const Link> links) {
  const std::vector<FabricVertex> all = ends();
  BundleSearch search(links);
  std::vector<std::vector<FabricEdge>> next(graph_.is_switch.size());
  for (const FabricVertex end : all) {
    const std::vector<std::uint32_t>& distance = distances_to(end);
    for (std::vector<FabricEdge>& edges : next) edges.clear();
    for (const FabricEdge& edge : edges_) {
      if (leads_on(edge, end, distance)) next[edge.from].push_back(edge);
    }
    for (const FabricVertex start : all) {
      if (start == end || distance[start] == unreachable) continue;
      for (std::vector<FabricVertex> layer{start}; layer.front() != end;) layer = search.cross(layer, next);
    }
  }
  return search.take();
}

}  // namespace hcclsim::sim
