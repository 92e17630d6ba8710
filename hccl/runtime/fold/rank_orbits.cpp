#include "hccl/runtime/fold/rank_orbits.hpp"

#include <algorithm>
#include <numeric>

#include "hccl/runtime/fold/turn_search.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t none = ~0U;

}  // namespace

Seats Seats::all(const Communicator& group) {
  Seats seats{.members = std::vector<Rank>(group.ranks.size()), .npus = group.ranks, .place_of = {}};
  std::iota(seats.members.begin(), seats.members.end(), Rank{0});
  seats.place_of = seats.members;
  return seats;
}

RankOrbits::RankOrbits(const TurnSearch& search, std::span<const Rank> preferred)
    : orbit_of_(search.turns().front().to.size(), none), place_(orbit_of_.size(), 0), links_(search.links()) {
  const std::vector<Turn>& turns = search.turns();
  for (std::size_t i = turns.size(); i-- > 1;) radices_.push_back(turns[i].radix);
  std::vector<Rank> inner;
  const auto add_orbit = [&](Rank representative) {
    if (orbit_of_[representative] != none) return;
    inner.assign(1, representative);
    for (std::size_t i = turns.size(); i-- > 1;) {
      const std::size_t count = inner.size();
      for (std::size_t copy = count; copy < count * turns[i].radix; ++copy) {
        inner.push_back(turns[i].to[inner[copy - count]]);
      }
    }
    const auto orbit = static_cast<std::uint32_t>(first_.size());
    first_.push_back(static_cast<std::uint32_t>(members_.size()));
    Rank place = 0;
    while (orbit_of_[inner.front()] == none) {
      for (Rank& rank : inner) {
        orbit_of_[rank] = orbit;
        place_[rank] = place++;
        members_.push_back(rank);
        rank = turns.front().to[rank];
      }
    }
  };
  for (const Rank rank : preferred) add_orbit(rank);
  for (Rank rank = 0; rank < orbit_of_.size(); ++rank) add_orbit(rank);
}

std::optional<RankOrbits> RankOrbits::find(sim::Cluster& cluster, const Coupling& coupling,
                                           std::span<const Rank> preferred) {
  TurnSearch search(cluster, coupling);
  if (!search.find()) return {};
  return RankOrbits(search, preferred);
}

Rank RankOrbits::sum(Rank first, Rank second, Rank ranks) const {
  Rank sum = 0;
  Rank unit = 1;
  for (const Rank radix : radices_) {
    sum += unit * ((first / unit + second / unit) % radix);
    unit *= radix;
  }
  return sum + unit * ((first / unit + second / unit) % (ranks / unit));
}

Rank RankOrbits::back(Rank turns, Rank ranks) const {
  Rank back = 0;
  Rank unit = 1;
  for (const Rank radix : radices_) {
    back += unit * ((radix - turns / unit % radix) % radix);
    unit *= radix;
  }
  const Rank left = ranks / unit;
  return back + unit * ((left - turns / unit % left) % left);
}

Rank RankOrbits::size(Rank rank) const {
  const std::uint32_t orbit = orbit_of_[rank];
  const std::size_t end = orbit + 1 < first_.size() ? first_[orbit + 1] : members_.size();
  return static_cast<Rank>(end - first_[orbit]);
}

std::vector<FoldedClass> RankOrbits::classes() const {
  std::vector<FoldedClass> classes;
  std::vector<std::uint32_t> class_of(orbits(), none);
  for (Rank rank = 0; rank < ranks(); ++rank) {
    std::uint32_t& number = class_of[orbit_of_[rank]];
    if (number == none) {
      number = static_cast<std::uint32_t>(classes.size());
      classes.push_back({.simulated = representative(rank)});
    }
    classes[number].ranks.push_back(rank);
  }
  return classes;
}

std::pair<Rank, Rank> RankOrbits::turned_back(Rank source, Rank destination) const {
  const Rank ranks = size(destination);
  const Rank place = sum(place_[destination], back(place_[source] % ranks, ranks), ranks);
  return {representative(source), members_[first_[orbit_of_[destination]] + place]};
}

std::vector<std::pair<std::uint32_t, Seats>> RankOrbits::fold(std::span<const Communicator* const> groups,
                                                              Rank own) const {
  std::vector<std::uint32_t> group_of(ranks(), none);
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    for (const Rank rank : groups[group]->ranks) group_of[rank] = group;
  }
  std::vector<std::pair<std::uint32_t, Seats>> folded;
  std::vector<bool> counted(groups.size(), false);
  std::vector<Rank> seat_of(orbits());
  std::vector<std::uint32_t> seated_in(orbits(), none);
  const auto add = [&](std::uint32_t group) {
    if (counted[group]) return;
    const std::vector<Rank>& ranks = groups[group]->ranks;
    Seats seats{.members = {}, .npus = {}, .place_of = {}, .groups = 0};
    const std::uint32_t orbit = orbit_of_[ranks.front()];
    for (std::size_t at = first_[orbit]; at < first_[orbit] + size(ranks.front()); ++at) {
      const std::uint32_t image = group_of[members_[at]];
      if (counted[image]) continue;
      counted[image] = true;
      ++seats.groups;
    }
    for (Rank member = 0; member < ranks.size(); ++member) {
      const std::uint32_t of = orbit_of_[ranks[member]];
      if (seated_in[of] != group) {
        seated_in[of] = group;
        seat_of[of] = static_cast<Rank>(seats.members.size());
        seats.members.push_back(member);
        seats.npus.push_back(representative(ranks[member]));
      }
      seats.place_of.push_back(seat_of[of]);
    }
    folded.emplace_back(group, std::move(seats));
  };
  if (own < ranks() && group_of[own] != none) add(group_of[own]);
  for (std::uint32_t group = 0; group < groups.size(); ++group) add(group);
  return folded;
}

}  // namespace hcclsim::hccl
