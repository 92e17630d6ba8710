#include "hccl/verify/topology_cuts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "hccl/check/cuts.hpp"

namespace hcclsim::hccl {
namespace {

using Groups = std::vector<std::uint32_t>;

/// The ranks as the platform places them.
class Placement {
 public:
  Placement(sim::Cluster& cluster, std::span<const Rank> npus, bool all_routes)
      : cluster_(cluster), npus_(npus), all_routes_(all_routes) {
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (Rank rank = 0; rank < npus.size(); ++rank) {
      const auto next = static_cast<std::uint32_t>(ranks_of_.size());
      const std::uint32_t server = numbers.emplace(cluster.npu(npus[rank]).server, next).first->second;
      if (server == next) ranks_of_.emplace_back();
      server_.push_back(server);
      ranks_of_[server].push_back(rank);
    }
    find_pods();
    find_looks();
  }

  [[nodiscard]] const sim::Route& route(Rank from, Rank to) const { return cluster_.route(npus_[from], npus_[to]); }

  [[nodiscard]] Groups single_npus() const {
    Groups group(npus_.size());
    std::iota(group.begin(), group.end(), 0U);
    return group;
  }
  [[nodiscard]] Groups die_pairs() const {
    const auto is_sio = [](const sim::Link& link) { return link.kind == sim::LinkKind::sio; };
    if (std::ranges::none_of(cluster_.links(), is_sio)) return single_npus();
    Groups group(npus_.size());
    std::uint32_t pairs = 0;
    for (Rank rank = 0; rank < npus_.size(); ++rank) {
      const std::vector<Rank>& others = ranks_of_[server_[rank]];
      const auto first = std::find_if(others.begin(), others.end(),
                                      [&](Rank other) { return other == rank || only_sio(other, rank); });
      group[rank] = *first == rank ? pairs++ : group[*first];
    }
    return group;
  }
  [[nodiscard]] const Groups& servers() const { return server_; }
  [[nodiscard]] Groups pods() const {
    Groups group;
    for (const std::uint32_t server : server_) group.push_back(pod_of_[server]);
    return group;
  }

  /// A route that is looked at.
  struct Look {
    Rank from = 0;
    Rank to = 0;
    const sim::Route* route = nullptr;
    bool of_few = false;  ///< there are others within the server, which may have other links on their way
  };
  [[nodiscard]] const std::vector<Look>& looks() const { return looks_; }

 private:
  /// Servers whose first ranks reach each other without RoCE. A server is looked at beside the one before it and the
  /// first one of the super-pod that the file gives it: a look at all others would be quadratic in servers.
  void find_pods() {
    std::map<std::uint32_t, std::uint32_t> first_of_super_pod;
    for (std::uint32_t server = 0; server < ranks_of_.size(); ++server) {
      const std::uint32_t super_pod = cluster_.npu(npus_[ranks_of_[server].front()]).super_pod;
      const std::uint32_t first = first_of_super_pod.emplace(super_pod, server).first->second;
      auto pod = static_cast<std::uint32_t>(first_server_.size());
      for (const std::uint32_t other : {first, std::max(server, 1U) - 1}) {
        if (other < server && pod == first_server_.size() && without_roce(other, server)) pod = pod_of_[other];
      }
      if (pod == first_server_.size()) first_server_.push_back(server);
      pod_of_.push_back(pod);
    }
  }

  [[nodiscard]] bool without_roce(std::uint32_t server, std::uint32_t other) const {
    return route(ranks_of_[server].front(), ranks_of_[other].front()).transport == sim::Transport::sdma;
  }

  void find_looks() {
    for (Rank from = 0; from < npus_.size(); ++from) {
      if (all_routes_) {
        for (Rank to = 0; to < npus_.size(); ++to) look_at(from, to);
        continue;
      }
      look_within(ranks_of_[server_[from]], from);
      for (const std::uint32_t server : others_of(server_[from])) {
        const std::vector<Rank>& there = ranks_of_[server];
        const Rank to = there[from % there.size()];
        look_at(from, to);
        look_at(to, from);
      }
    }
  }

  /// All ranks of its server; of a large one, which no product is, a few of them where these show that the rank has one
  /// link for all that it sends and one for all that it gets.
  void look_within(const std::vector<Rank>& server, Rank from) {
    constexpr std::size_t large = 256;
    const std::vector<Rank> some = server.size() > large ? some_of(server, from) : std::vector<Rank>{};
    const bool has_port = !some.empty() && std::ranges::all_of(some, [&](Rank to) {
      return route(from, to).links.front() == route(from, some.front()).links.front() &&
             route(to, from).links.back() == route(some.front(), from).links.back();
    });
    for (const Rank to : has_port ? some : server) {
      look_at(from, to, has_port);
      if (has_port) look_at(to, from, true);
    }
  }

  /// Those beside a rank, and some far away, in both directions.
  static std::vector<Rank> some_of(const std::vector<Rank>& server, Rank rank) {
    const std::size_t size = server.size();
    const auto place = static_cast<std::size_t>(std::ranges::lower_bound(server, rank) - server.begin());
    std::vector<Rank> some;
    for (const std::size_t away : {std::size_t{1}, std::size_t{2}, std::size_t{3}, size / 4, size / 2}) {
      some.push_back(server[(place + away) % size]);
      some.push_back(server[(place + size - away) % size]);
    }
    return some;
  }

  void look_at(Rank from, Rank to, bool of_few = false) {
    if (from != to) looks_.push_back({from, to, &route(from, to), of_few});
  }

  /// The next server, one far away, and the first one of the next super-pod.
  [[nodiscard]] std::set<std::uint32_t> others_of(std::uint32_t server) const {
    const auto servers = static_cast<std::uint32_t>(ranks_of_.size());
    std::set<std::uint32_t> others{(server + 1) % servers, (server + servers / 2) % servers,
                                   first_server_[(pod_of_[server] + 1) % first_server_.size()]};
    others.erase(server);
    return others;
  }

  [[nodiscard]] bool only_sio(Rank a, Rank b) const {
    const std::vector<sim::LinkId>& links = route(a, b).links;
    return std::all_of(links.begin(), links.end(),
                       [&](sim::LinkId link) { return cluster_.links()[link].kind == sim::LinkKind::sio; });
  }

  sim::Cluster& cluster_;
  std::span<const Rank> npus_;
  bool all_routes_;
  Groups server_;                            // of each rank, numbered by their first ranks
  std::vector<std::vector<Rank>> ranks_of_;  // by server
  Groups pod_of_;                            // by server
  std::vector<std::uint32_t> first_server_;  // by super-pod
  std::vector<Look> looks_;
};

/// Links that carry all bytes of one direction over the border of a group, in three ways.
class Border {
 public:
  void add(const Placement::Look& look) {
    const sim::Route& route = *look.route;
    if (route.links.empty()) {
      least_factor_ = 0;
      return;
    }
    visit_ways(route, std::numeric_limits<Bytes>::max(), [this](const sim::Route& way, double) {
      links_[0].insert(way.links.front());
      links_[1].insert(way.links.back());
    });
    // Ways that are not looked at may have other links inside a fabric.
    slowest_known_ = slowest_known_ && !route.by_fabric && !look.of_few;
    links_[2].insert(route.slowest);
    least_factor_ = std::min({least_factor_, route.write_factor, route.read_factor});
  }

  [[nodiscard]] BytesPerSecond speed(const sim::Cluster& cluster) const {
    BytesPerSecond least = std::numeric_limits<double>::infinity();
    for (const std::set<sim::LinkId>& links : links_) {
      if (links.empty()) return std::numeric_limits<double>::infinity();  // no route was looked at
      if (&links == &links_[2] && !slowest_known_) continue;
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
  bool slowest_known_ = true;
  double least_factor_ = 1;
};

CutLevel level_of(const sim::Cluster& cluster, const Placement& placement, std::string name, Groups group) {
  const std::size_t groups = std::size_t{*std::max_element(group.begin(), group.end())} + 1;
  std::vector<Border> out(groups);
  std::vector<Border> in(groups);
  for (const Placement::Look& look : placement.looks()) {
    if (group[look.from] == group[look.to]) continue;
    out[group[look.from]].add(look);
    in[group[look.to]].add(look);
  }
  CutLevel level{std::move(name), std::move(group), {}, {}};
  for (std::size_t i = 0; i < groups; ++i) {
    level.out.push_back(out[i].speed(cluster));
    level.in.push_back(in[i].speed(cluster));
  }
  return level;
}

Seconds least_latency(const Placement& placement) {
  Seconds least = std::numeric_limits<double>::infinity();
  for (const Placement::Look& look : placement.looks()) least = std::min(least, look.route->latency);
  return least;
}

}  // namespace

TopologyBounds topology_bounds(sim::Cluster& cluster, std::span<const Rank> npus, const device::TaskCosts& costs,
                               Rank most_ranks) {
  TopologyBounds bounds{.all_routes = npus.size() <= most_ranks};
  if (npus.size() < 2) return bounds;
  const Placement placement(cluster, npus, bounds.all_routes);
  bounds.least_step = least_latency(placement) + std::min(costs.transfer_setup(sim::Transport::sdma, 1),
                                                          costs.transfer_setup(sim::Transport::rdma, 1));
  std::array<std::pair<const char*, Groups>, 4> levels{{{"NPU", placement.single_npus()},
                                                        {"die pair", placement.die_pairs()},
                                                        {"server", placement.servers()},
                                                        {"super-pod", placement.pods()}}};
  for (auto& [name, group] : levels) {
    const bool one_group = std::all_of(group.begin(), group.end(), [](std::uint32_t number) { return number == 0; });
    if (one_group || (!bounds.cuts.empty() && bounds.cuts.back().group == group)) continue;
    bounds.cuts.push_back(level_of(cluster, placement, name, std::move(group)));
  }
  return bounds;
}

Seconds least_time(const Operation& operation, const TopologyBounds& bounds) {
  Seconds least = 0;
  for (const CutLevel& level : bounds.cuts) {
    const CutDistance distance = least_of(operation, level);
    least = std::max({least, distance.least_time, distance.least > 0 ? bounds.least_step : 0});
  }
  return least;
}

}  // namespace hcclsim::hccl
