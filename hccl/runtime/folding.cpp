#include "hccl/runtime/folding.hpp"

#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "hccl/check/symmetry/symmetry.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

constexpr sim::LinkId none = std::numeric_limits<sim::LinkId>::max();
/// More would take longer to look at than most schedules to simulate.
constexpr std::uint64_t most_routes = 2'000'000;

using Ends = std::set<std::pair<Rank, Rank>>;

/// Source and destination of the transfers of the first ranks; those of the other ranks are their images.
Ends transfers_of_first(const Schedule& schedule, Rank ranks) {
  Ends ends;
  for (Rank rank = 0; rank < ranks; ++rank) {
    for_each_task(schedule, rank, [&](std::uint32_t /*stage*/, const QueueWalk& walk) {
      if (!is_transfer(walk.task()->kind)) return;
      const Rank peer = walk.peer(schedule, rank);
      ends.insert(reads(walk.task()->kind) ? std::pair{peer, rank} : std::pair{rank, peer});
    });
  }
  return ends;
}

/// Where the shift carries each link, as far as routes say so.
class LinkShift {
 public:
  explicit LinkShift(const sim::Cluster& cluster)
      : cluster_(cluster), next_(cluster.links().size(), none), previous_(next_) {}

  /// Adds a route and its image; false if they are not alike.
  bool add(const sim::Route& route, const sim::Route& image) {
    if (route.links.size() != image.links.size() || route.latency != image.latency ||
        route.transport != image.transport || route.write_factor != image.write_factor ||
        route.read_factor != image.read_factor) {
      return false;
    }
    for (std::size_t i = 0; i < route.links.size(); ++i) {
      if (!add(route.links[i], image.links[i])) return false;
    }
    return true;
  }

  /// The first link of every orbit in place of all; `servers` shifts are none.
  [[nodiscard]] sim::LinkFold fold(std::uint32_t servers) const {
    sim::LinkFold fold{std::vector<sim::LinkId>(next_.size()), std::vector<double>(next_.size(), 1)};
    std::iota(fold.representative.begin(), fold.representative.end(), 0U);
    for (sim::LinkId first = 0; first < next_.size(); ++first) {
      if (next_[first] == none || fold.representative[first] != first) continue;
      std::uint32_t links = 1;
      for (sim::LinkId link = next_[first]; link != first; link = next_[link]) {
        fold.representative[link] = first;
        ++links;
      }
      if (cluster_.links()[first].shared) fold.share[first] = static_cast<double>(links) / servers;
    }
    return fold;
  }

 private:
  bool add(sim::LinkId link, sim::LinkId image) {
    if (next_[link] == image) return true;
    const auto links = cluster_.links();
    const bool alike = cluster_.capacity(link) == cluster_.capacity(image) &&
                       links[link].shared == links[image].shared && links[link].kind == links[image].kind;
    if (next_[link] != none || previous_[image] != none || !alike) return false;
    next_[link] = image;
    previous_[image] = link;
    return true;
  }

  const sim::Cluster& cluster_;
  std::vector<sim::LinkId> next_;
  std::vector<sim::LinkId> previous_;
};

/// Rank and NPU are the same number.
bool in_order(const std::vector<Rank>& npus) {
  for (Rank rank = 0; rank < npus.size(); ++rank) {
    if (npus[rank] != rank) return false;
  }
  return true;
}

/// NPUs of every server, if all ranks fill servers of the same size one after the other; else 0.
Rank npus_per_server(const sim::Cluster& cluster, Rank ranks) {
  Rank size = 1;
  while (size < ranks && cluster.npu(size).server == cluster.npu(0).server) ++size;
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (ranks % size != 0 || cluster.npu(rank).server != cluster.npu(rank / size * size).server) return 0;
  }
  return size;
}

std::optional<sim::LinkFold> fold_of(sim::Cluster& cluster, const Schedule& schedule, const Rotation& rotation,
                                     Rank npus) {
  const Ends transfers = transfers_of_first(schedule, rotation.period());
  if (transfers.size() * rotation.turns() > most_routes) return {};
  LinkShift shift(cluster);
  const auto route = [&](const std::pair<Rank, Rank>& ends, Rank turns) -> const sim::Route& {
    return cluster.route(rotation.image(ends.first, turns), rotation.image(ends.second, turns));
  };
  for (const std::pair<Rank, Rank>& ends : transfers) {
    for (Rank turns = 0; turns < rotation.turns(); ++turns) {
      if (!shift.add(route(ends, turns), route(ends, turns + npus / rotation.period()))) return {};
    }
  }
  return shift.fold(schedule.ranks / npus);
}

}  // namespace

Folding::Folding(sim::Cluster& cluster, const SimulateOptions& options, const std::vector<CollectiveCall>& calls)
    : cluster_(cluster) {
  if (!options.fold || options.trace || options.network != sim::NetworkKind::fluid || calls.size() != 1 ||
      !in_order(calls.front().ranks)) {
    return;
  }
  const Schedule& schedule = *calls.front().schedule;
  const Rank size = npus_per_server(cluster, schedule.ranks);
  if (size == 0 || size == schedule.ranks) return;
  const std::optional<Rotation> rotation = Rotation::of(schedule);
  if (!rotation.has_value() || size % rotation->period() != 0) return;
  std::optional<sim::LinkFold> fold = fold_of(cluster, schedule, *rotation, size);
  if (!fold.has_value()) return;
  cluster.fold(std::move(*fold));
  period_ = size;
  servers_ = schedule.ranks / size;
}

Folding::~Folding() {
  if (servers_ > 1) cluster_.unfold();
}

}  // namespace hcclsim::hccl
