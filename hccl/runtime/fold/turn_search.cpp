#include "hccl/runtime/fold/turn_search.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "hccl/check/symmetry/symmetry.hpp"
#include "hccl/check/symmetry/turns_in_time.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t no_group = ~0U;
/// More would take longer to look at than most steps to simulate.
constexpr std::uint64_t most_routes = 2'000'000;

/// Source and destination of the transfers of the first ranks.
void add_transfers(const Schedule& schedule, Rank ranks, std::set<std::pair<Rank, Rank>>& ends) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    for_each_way(schedule, rank, [&](std::uint32_t /*stage*/, const QueueWalk& walk) {
      const Rank peer = walk.peer(schedule, rank);
      ends.insert(reads(walk.task()->kind) ? std::pair{peer, rank} : std::pair{rank, peer});
    });
  }
}

/// The same of posts to others.
void add_notifies(const Schedule& schedule, Rank ranks, std::set<std::pair<Rank, Rank>>& ends) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    for_each_peer(schedule, rank, [&](std::uint32_t /*stage*/, const QueueWalk& walk) {
      if (walk.task()->kind == TaskKind::post) ends.emplace(rank, walk.peer(schedule, rank));
    });
  }
}

/// Ranks of each kind, which are equally many; else nothing.
std::vector<std::vector<Rank>> split_by_kind(const std::vector<Rank>& region, std::span<const std::uint32_t> kinds) {
  std::map<std::uint32_t, std::vector<Rank>> split;
  for (const Rank rank : region) split[kinds[rank]].push_back(rank);
  std::vector<std::vector<Rank>> lists;
  for (auto& [kind, ranks] : split) {
    if (!lists.empty() && ranks.size() != lists.front().size()) return {};
    lists.push_back(std::move(ranks));
  }
  return lists;
}

/// Disjoint sets of ranks.
class UnionFind {
 public:
  explicit UnionFind(std::size_t ranks) : parent_(ranks) { std::iota(parent_.begin(), parent_.end(), Rank{0}); }

  Rank find(Rank rank) {
    while (parent_[rank] != rank) rank = parent_[rank] = parent_[parent_[rank]];
    return rank;
  }
  void join(Rank first, Rank second) {
    parent_[std::max(find(first), find(second))] = std::min(find(first), find(second));
  }

 private:
  std::vector<Rank> parent_;
};

}  // namespace

TurnSearch::TurnSearch(sim::Cluster& cluster, const Coupling& coupling) : cluster_(cluster), coupling_(coupling) {
  turns_.push_back(nothing());
  for (const Coupling::Family& family : coupling.families) add_family(family);
}

Turn TurnSearch::nothing() const {
  Turn turn{.to = Ranks(coupling_.kinds.size()), .links = LinkShift(cluster_, coupling_.touched)};
  std::iota(turn.to.begin(), turn.to.end(), Rank{0});
  return turn;
}

void TurnSearch::add_family(const Coupling::Family& family) {
  Family& own = families_.emplace_back();
  own.group_of.assign(coupling_.kinds.size(), no_group);
  own.member_of.assign(coupling_.kinds.size(), 0);
  std::map<std::vector<const Schedule*>, std::uint32_t> shapes;
  for (std::uint32_t group = 0; group < family.groups.size(); ++group) {
    const std::vector<Rank>& ranks = family.groups[group]->ranks;
    for (Rank member = 0; member < ranks.size(); ++member) {
      own.group_of[ranks[member]] = group;
      own.member_of[ranks[member]] = member;
    }
    const auto [shape, is_new] = shapes.try_emplace(family.schedules[group]);
    if (is_new) shape->second = add_shape(shape->first, static_cast<Rank>(ranks.size()));
    own.shape_of.push_back(shape->second);
  }
}

std::uint32_t TurnSearch::add_shape(const std::vector<const Schedule*>& schedules, Rank ranks) {
  const std::set<const Schedule*> different(schedules.begin(), schedules.end());
  Shape shape{
      .ranks = ranks, .period = 1, .schedules = {different.begin(), different.end()}, .transfers = {}, .notifies = {}};
  for (const Schedule* schedule : different) {
    const Rank otherwise = half_turns_in_time(*schedule) ? ranks / 2 : ranks;
    shape.period = std::lcm(shape.period, period_in_time(*schedule).value_or(otherwise));
  }
  std::set<std::pair<Rank, Rank>> ends;
  std::vector<const Schedule*> seen;
  for (const Schedule* schedule : different) {
    if (std::ranges::any_of(seen, [&](const Schedule* one) { return same_ways(*one, *schedule); })) continue;
    seen.push_back(schedule);
    add_transfers(*schedule, shape.period, ends);
  }
  shape.transfers.assign(ends.begin(), ends.end());
  if (!coupling_.touched.empty()) {
    ends.clear();
    for (const Schedule* schedule : different) add_notifies(*schedule, shape.period, ends);
    shape.notifies.assign(ends.begin(), ends.end());
  }
  shapes_.push_back(std::move(shape));
  return static_cast<std::uint32_t>(shapes_.size() - 1);
}

bool TurnSearch::find() {
  std::uint64_t routes = 0;
  for (const Family& family : families_) {
    for (const std::uint32_t number : family.shape_of) {
      const Shape& shape = shapes_[number];
      routes += shape.transfers.size() * (shape.ranks / shape.period);
    }
  }
  if (routes > most_routes) return false;
  Ranks all(coupling_.kinds.size());
  std::iota(all.begin(), all.end(), Rank{0});
  const bool together = turn_region(all);
  if (turns_.front().block > 0) find_others(all);
  const bool found = together || turns_.size() > 1;
  const std::vector<Ranks> parts = regions();
  if (parts.size() == 1) return found;
  // Apart, regions may turn by shorter steps, and what one of them depends on keeps no other from turning.
  const Rank left = orbits();
  std::vector<Turn> turns = std::exchange(turns_, {});
  if (turn_apart(parts) && orbits() < left) return true;
  turns_ = std::move(turns);
  return found;
}

void TurnSearch::find_others(const Ranks& all) {
  std::vector<Rank> npus(cluster_.servers(), 0);
  for (const Rank rank : all) ++npus[cluster_.npu(rank).server];
  const Rank most = std::ranges::max(npus);
  const std::vector<Ranks> by_kind = split_by_kind(all, coupling_.kinds);
  Rank block = turns_.front().step;
  while (block > 1) {
    if (block <= most && add_turn(all, by_kind, block)) {
      block = turns_.back().step;
      continue;
    }
    Rank next = block / 2;
    while (block % next != 0) --next;
    block = next;
  }
}

bool TurnSearch::add_turn(const Ranks& all, const std::vector<Ranks>& by_kind, Rank block) {
  Turn turn = nothing();
  turn.block = block;
  for (turn.step = 1; turn.step < block; ++turn.step) {
    if (block % turn.step != 0 || !try_step(all, by_kind, turn)) continue;
    turns_.push_back(std::move(turn));
    return true;
  }
  return false;
}

Rank TurnSearch::orbits() const {
  const Ranks& turn = turns_.front().to;
  std::vector<bool> seen(turn.size(), false);
  Rank orbits = 0;
  for (Rank first = 0; first < turn.size(); ++first) {
    if (seen[first]) continue;
    ++orbits;
    for (Rank rank = first; !seen[rank]; rank = turn[rank]) seen[rank] = true;
  }
  // The other turns move all ranks, and none to where those before them do.
  for (std::size_t i = 1; i < turns_.size(); ++i) orbits /= turns_[i].radix;
  return orbits;
}

sim::LinkFold TurnSearch::links() const {
  const auto links = cluster_.links();
  sim::LinkFold fold{std::vector<sim::LinkId>(links.size()), std::vector<double>(links.size(), 1),
                     std::vector<std::uint32_t>(links.size(), 1)};
  std::iota(fold.representative.begin(), fold.representative.end(), 0U);
  std::vector<bool> seen(links.size(), false);
  std::vector<sim::LinkId> orbit;
  for (sim::LinkId first = 0; first < links.size(); ++first) {
    if (seen[first]) continue;
    orbit.assign(1, first);
    seen[first] = true;
    Rank ranks = 1;
    for (const Turn& turn : turns_) {
      ranks *= turn.links.ranks(first);
      // Turns commute: the images of all that the turns before have reached.
      for (std::size_t i = 0; i < orbit.size(); ++i) {
        const sim::LinkId image = turn.links.image(orbit[i]);
        if (image == LinkShift::none || seen[image]) continue;
        seen[image] = true;
        fold.representative[image] = first;
        orbit.push_back(image);
      }
    }
    fold.flows[first] = static_cast<std::uint32_t>(ranks / orbit.size());
    if (links[first].shared) fold.share[first] = static_cast<double>(orbit.size()) / ranks;
  }
  return fold;
}

bool TurnSearch::turn_apart(const std::vector<Ranks>& parts) {
  // So often the search begins anew, with one more that keeps as it is what others would have turned.
  constexpr int most_tries = 16;
  const std::vector<AlikeRegions> lists = alike(parts);
  std::vector<bool> kept;
  for (const AlikeRegions& list : lists) {
    kept.push_back(list.size() == 1 && split_by_kind(*list.front(), coupling_.kinds).empty());
  }
  for (int tries = 0; tries < most_tries; ++tries) {
    turns_.assign(1, nothing());
    const std::optional<std::size_t> held_up = turn_but(lists, kept);
    if (!held_up.has_value()) return orbits() < coupling_.kinds.size();
    if (kept[*held_up]) return false;
    kept[*held_up] = true;
  }
  return false;
}

std::optional<std::size_t> TurnSearch::turn_but(const std::vector<AlikeRegions>& lists, const std::vector<bool>& kept) {
  const auto keeps = [this](const Ranks* region) { return keep_region(*region); };
  const auto fits = [this](const Ranks* region) { return turn_region(*region) || keep_region(*region); };
  // First those that stay as they are, so that others keep off their links.
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (kept[i] && !std::ranges::all_of(lists[i], keeps)) return i;
  }
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const bool in_circle = !kept[i] && lists[i].size() > 1 && turn_in_circle(lists[i]);
    if (!kept[i] && !in_circle && !std::ranges::all_of(lists[i], fits)) return i;
  }
  return {};
}

std::vector<TurnSearch::AlikeRegions> TurnSearch::alike(const std::vector<Ranks>& parts) const {
  // Where more are different, each region costs as many comparisons.
  constexpr std::size_t most_compared = 8;
  std::vector<AlikeRegions> lists;
  std::map<std::vector<std::uint32_t>, std::vector<std::size_t>> lists_of;  // by the kinds of their ranks
  Turn turn = nothing();
  for (const Ranks& region : parts) {
    std::vector<std::uint32_t> kinds;
    for (const Rank rank : region) kinds.push_back(coupling_.kinds[rank]);
    std::vector<std::size_t>& candidates = lists_of[std::move(kinds)];
    const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(std::min(candidates.size(), most_compared));
    const auto found = std::find_if(
        candidates.begin(), end, [&](std::size_t list) { return change_places(*lists[list].front(), region, turn); });
    if (found != end) {
      lists[*found].push_back(&region);
      continue;
    }
    candidates.push_back(lists.size());
    lists.push_back({&region});
  }
  return lists;
}

bool TurnSearch::change_places(const Ranks& one, const Ranks& other, Turn& turn) const {
  Ranks both = one;
  both.insert(both.end(), other.begin(), other.end());
  for (std::size_t place = 0; place < one.size(); ++place) {
    turn.to[one[place]] = other[place];
    turn.to[other[place]] = one[place];
  }
  turn.links.begin_region(2);
  const bool carried = carries(both, turn);
  turn.links.forget_region();
  for (const Rank rank : both) turn.to[rank] = rank;
  return carried;
}

bool TurnSearch::turn_in_circle(const AlikeRegions& list) {
  Turn& turn = turns_.front();
  Ranks all;
  for (const Ranks* region : list) all.insert(all.end(), region->begin(), region->end());
  const Ranks& first = *list.front();
  const Ranks& last = *list.back();
  const std::vector<Ranks> by_kind = split_by_kind(first, coupling_.kinds);
  turn.block = by_kind.empty() ? 1 : static_cast<Rank>(by_kind.front().size());
  for (turn.step = 1; turn.step <= turn.block; ++turn.step) {
    if (turn.block % turn.step != 0) continue;
    turn.radix = turn.block / turn.step;
    std::map<Rank, Rank> turned;  // of the first region
    for (const Ranks& ranks : by_kind) {
      for (Rank i = 0; i < ranks.size(); ++i) turned[ranks[i]] = ranks[turn.place(i)];
    }
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      for (std::size_t place = 0; place < first.size(); ++place) turn.to[(*list[i])[place]] = (*list[i + 1])[place];
    }
    for (std::size_t place = 0; place < first.size(); ++place) {
      turn.to[last[place]] = by_kind.empty() ? first[place] : turned.at(first[place]);
    }
    turn.links.begin_region(static_cast<Rank>(list.size()) * turn.radix);
    if (carries(all, turn)) return true;
    turn.links.forget_region();
  }
  for (const Rank rank : all) turn.to[rank] = rank;
  return false;
}

std::vector<TurnSearch::Ranks> TurnSearch::regions() const {
  UnionFind sets(coupling_.kinds.size());
  for (const Coupling::Family& family : coupling_.families) {
    for (const Communicator* group : family.groups) {
      for (const Rank rank : group->ranks) sets.join(rank, group->ranks.front());
    }
  }
  for (Rank rank = 0; rank < coupling_.kinds.size(); ++rank) {
    for (const std::int64_t offset : coupling_.offsets[coupling_.kinds[rank]]) {
      sets.join(rank, static_cast<Rank>(std::int64_t{rank} + offset));
    }
  }
  std::map<Rank, Ranks> found;
  for (Rank rank = 0; rank < coupling_.kinds.size(); ++rank) found[sets.find(rank)].push_back(rank);
  std::vector<Ranks> regions;
  for (auto& [first, ranks] : found) regions.push_back(std::move(ranks));
  return regions;
}

bool TurnSearch::turn_region(const Ranks& region) {
  const std::vector<Ranks> by_kind = split_by_kind(region, coupling_.kinds);
  if (by_kind.empty()) return false;
  Turn& turn = turns_.front();
  turn.block = static_cast<Rank>(by_kind.front().size());
  for (turn.step = 1; turn.step < turn.block; ++turn.step) {
    if (turn.block % turn.step == 0 && try_step(region, by_kind, turn)) return true;
  }
  for (const Rank rank : region) turn.to[rank] = rank;
  return false;
}

bool TurnSearch::keep_region(const Ranks& region) {
  Turn& turn = turns_.front();
  for (const Rank rank : region) turn.to[rank] = rank;
  turn.links.begin_region(1);
  if (carries_routes(region, turn)) return true;
  turn.links.forget_region();
  return false;
}

bool TurnSearch::try_step(const Ranks& region, const std::vector<Ranks>& by_kind, Turn& turn) const {
  for (const Ranks& ranks : by_kind) {
    for (Rank i = 0; i < ranks.size(); ++i) turn.to[ranks[i]] = ranks[turn.place(i)];
  }
  turn.radix = turn.block / turn.step;
  turn.links.begin_region(turn.radix);
  if (carries(region, turn)) return true;
  turn.links.forget_region();
  return false;
}

bool TurnSearch::carries(const Ranks& region, Turn& turn) const {
  return carries_groups(region, turn) && carries_messages(region, turn) && carries_routes(region, turn);
}

bool TurnSearch::carries_groups(const Ranks& region, const Turn& turn) const {
  std::map<std::pair<std::uint32_t, Rank>, bool> in_blocks;  // of shapes and blocks asked for
  const auto turns_in_blocks = [&](std::uint32_t shape, Rank block) {
    const auto [found, is_new] = in_blocks.try_emplace({shape, block});
    if (is_new) {
      found->second = std::ranges::all_of(shapes_[shape].schedules, [block](const Schedule* schedule) {
        return turns_in_blocks_in_time(*schedule, block);
      });
    }
    return found->second;
  };
  for (std::size_t f = 0; f < families_.size(); ++f) {
    const Family& family = families_[f];
    for (const Rank rank : region) {
      const std::uint32_t group = family.group_of[rank];
      const std::uint32_t image = family.group_of[turn.to[rank]];
      if (group == no_group || image == no_group) {
        if (group != image) return false;
        continue;
      }
      if (family.member_of[rank] != 0) continue;  // of a group, once
      const std::uint32_t shape = family.shape_of[group];
      if (shape != family.shape_of[image]) return false;
      const std::vector<Rank>& ranks = coupling_.families[f].groups[group]->ranks;
      const auto becomes = [&](const auto& place_of) {
        for (Rank member = 0; member < ranks.size(); ++member) {
          const Rank other = turn.to[ranks[member]];
          if (family.group_of[other] != image || family.member_of[other] != place_of(member)) return false;
        }
        return true;
      };
      const Rank places = family.member_of[turn.to[rank]];
      const auto size = static_cast<Rank>(ranks.size());
      if (places % shapes_[shape].period == 0 && becomes([&](Rank member) { return (member + places) % size; }))
        continue;
      // Members are ranks that lie apart in the order of their kind, so their blocks are smaller.
      const Rank block = turn.radix * places;
      const auto in_block = [&](Rank member) { return member - member % block + (member % block + places) % block; };
      if (places == 0 || !becomes(in_block) || !turns_in_blocks(shape, block)) return false;
    }
  }
  return true;
}

bool TurnSearch::carries_messages(const Ranks& region, const Turn& turn) const {
  return std::ranges::all_of(region, [&](Rank rank) {
    return std::ranges::all_of(coupling_.offsets[coupling_.kinds[rank]], [&](std::int64_t offset) {
      const auto to = static_cast<Rank>(std::int64_t{rank} + offset);
      return std::int64_t{turn.to[to]} == std::int64_t{turn.to[rank]} + offset;
    });
  });
}

bool TurnSearch::carries_routes(const Ranks& region, Turn& turn) const {
  for (std::size_t f = 0; f < families_.size(); ++f) {
    const Family& family = families_[f];
    for (const Rank rank : region) {
      const std::uint32_t group = family.group_of[rank];
      if (group == no_group || family.member_of[rank] != 0) continue;
      if (!add_routes(*coupling_.families[f].groups[group], shapes_[family.shape_of[group]], turn)) return false;
    }
  }
  for (const Rank rank : region) {
    if (!add_copies(rank, turn)) return false;
    for (const std::int64_t offset : coupling_.offsets[coupling_.kinds[rank]]) {
      const auto peer = static_cast<Rank>(std::int64_t{rank} + offset);
      if (!add_route(rank, peer, turn)) return false;
      if (!coupling_.touched.empty() && !turn.links.keeps(cluster_.route(peer, rank))) return false;
    }
  }
  return true;
}

bool TurnSearch::add_copies(Rank rank, Turn& turn) const {
  if (coupling_.copies.empty()) return true;
  const sim::Route* const way = coupling_.copies[rank];
  const sim::Route* const image = coupling_.copies[turn.to[rank]];
  if (way == nullptr || image == nullptr) return way == image;
  return turn.links.add(*way, *image);
}

bool TurnSearch::add_routes(const Communicator& group, const Shape& shape, Turn& turn) const {
  const auto at = [&](Rank member, Rank by) { return group.ranks[(member + by) % shape.ranks]; };
  for (Rank by = 0; by < shape.ranks; by += shape.period) {
    for (const auto& [source, destination] : shape.transfers) {
      if (!add_route(at(source, by), at(destination, by), turn)) return false;
    }
    for (const auto& [source, destination] : shape.notifies) {
      if (!turn.links.keeps(cluster_.route(at(source, by), at(destination, by)))) return false;
    }
  }
  return true;
}

bool TurnSearch::add_route(Rank source, Rank destination, Turn& turn) const {
  return turn.links.add(cluster_.route(source, destination), cluster_.route(turn.to[source], turn.to[destination]));
}

}  // namespace hcclsim::hccl
