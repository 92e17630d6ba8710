#include "hccl/runtime/topology_cuts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace hcclsim::hccl {
namespace {

using Groups = std::vector<std::uint32_t>;
using SameGroup = std::function<bool(Rank, Rank)>;

/// Classes of an equivalence, numbered by their first rank.
Groups groups_by(Rank ranks, const SameGroup& same) {
  Groups group(ranks);
  std::vector<Rank> first;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto found = std::find_if(first.begin(), first.end(), [&](Rank one) { return same(one, rank); });
    group[rank] = static_cast<std::uint32_t>(found - first.begin());
    if (found == first.end()) first.push_back(rank);
  }
  return group;
}

/// Links that carry all bytes of one direction over the border of a group, in three ways.
class Border {
 public:
  void add(const sim::Route& route) {
    if (route.links.empty()) {
      least_factor_ = 0;
      return;
    }
    links_[0].insert(route.links.front());
    links_[1].insert(route.links.back());
    links_[2].insert(route.slowest);
    least_factor_ = std::min({least_factor_, route.write_factor, route.read_factor});
  }

  [[nodiscard]] BytesPerSecond speed(const sim::Cluster& cluster) const {
    BytesPerSecond least = std::numeric_limits<double>::infinity();
    for (const std::set<sim::LinkId>& links : links_) {
      BytesPerSecond sum = 0;
      for (const sim::LinkId link : links) {
        sum += cluster.links()[link].shared ? cluster.capacity(link) : std::numeric_limits<double>::infinity();
      }
      least = std::min(least, sum);
    }
    return least_factor_ > 0 ? least / least_factor_ : std::numeric_limits<double>::infinity();
  }

 private:
  std::array<std::set<sim::LinkId>, 3> links_;
  double least_factor_ = 1;
};

CutLevel level_of(sim::Cluster& cluster, std::string name, Groups group) {
  const std::size_t groups = std::size_t{*std::max_element(group.begin(), group.end())} + 1;
  std::vector<Border> out(groups);
  std::vector<Border> in(groups);
  for (Rank source = 0; source < group.size(); ++source) {
    for (Rank destination = 0; destination < group.size(); ++destination) {
      if (group[source] == group[destination]) continue;
      const sim::Route& route = cluster.route(source, destination);
      out[group[source]].add(route);
      in[group[destination]].add(route);
    }
  }
  CutLevel level{std::move(name), std::move(group), {}, {}};
  for (std::size_t i = 0; i < groups; ++i) {
    level.out.push_back(out[i].speed(cluster));
    level.in.push_back(in[i].speed(cluster));
  }
  return level;
}

bool only_sio(const sim::Cluster& cluster, const sim::Route& route) {
  return std::all_of(route.links.begin(), route.links.end(),
                     [&](sim::LinkId link) { return cluster.links()[link].kind == sim::LinkKind::sio; });
}

Seconds least_latency(sim::Cluster& cluster, Rank ranks) {
  Seconds least = std::numeric_limits<double>::infinity();
  for (Rank source = 0; source < ranks; ++source) {
    for (Rank destination = 0; destination < ranks; ++destination) {
      if (source != destination) least = std::min(least, cluster.route(source, destination).latency);
    }
  }
  return least;
}

}  // namespace

TopologyBounds topology_bounds(sim::Cluster& cluster, Rank ranks, const device::TaskCosts& costs) {
  TopologyBounds bounds;
  if (ranks < 2) return bounds;
  bounds.least_step = least_latency(cluster, ranks) + std::min(costs.transfer_setup(sim::Transport::sdma, 1),
                                                               costs.transfer_setup(sim::Transport::rdma, 1));
  const auto same_server = [&](Rank a, Rank b) { return cluster.npu(a).server == cluster.npu(b).server; };
  const std::array<std::pair<const char*, SameGroup>, 4> levels{{
      {"NPU", [](Rank a, Rank b) { return a == b; }},
      {"die pair", [&](Rank a, Rank b) { return same_server(a, b) && only_sio(cluster, cluster.route(a, b)); }},
      {"server", same_server},
      {"super-pod",
       [&](Rank a, Rank b) { return same_server(a, b) || cluster.route(a, b).transport == sim::Transport::sdma; }},
  }};
  for (const auto& [name, same] : levels) {
    Groups group = groups_by(ranks, same);
    const bool one_group = std::all_of(group.begin(), group.end(), [](std::uint32_t number) { return number == 0; });
    if (one_group || (!bounds.cuts.empty() && bounds.cuts.back().group == group)) continue;
    bounds.cuts.push_back(level_of(cluster, name, std::move(group)));
  }
  return bounds;
}

}  // namespace hcclsim::hccl
