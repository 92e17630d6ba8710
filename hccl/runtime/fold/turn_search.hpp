#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hccl/runtime/fold/rank_orbits.hpp"

/// Looks for turns of the ranks that carry a Coupling and the platform into themselves (rank_orbits.hpp).
namespace hcclsim::hccl {

/// Where a turn carries each link, as far as routes say so.
class LinkShift {
 public:
  /// Of each link whether it is touched (Coupling::touched).
  LinkShift(const sim::Cluster& cluster, const std::vector<bool>& touched);

  /// Routes that are added from now on are those of ranks of which `ranks` stand on every orbit.
  void begin_region(Rank ranks);
  /// Adds a route and its image; false if they are not alike, or a link is known to go elsewhere.
  [[nodiscard]] bool add(const sim::Route& route, const sim::Route& image);
  /// Whether notifies over a route may be like others: they take no bandwidth, but wait where a link is cut.
  [[nodiscard]] bool keeps(const sim::Route& route) const;
  /// Forgets what was added since begin_region().
  void forget_region();

  static constexpr sim::LinkId none = std::numeric_limits<sim::LinkId>::max();

  /// Where the turn carries a link that is used, else none.
  [[nodiscard]] sim::LinkId image(sim::LinkId link) const { return next_[link]; }
  /// Ranks on every orbit of those that use a link; 1 if none is known to.
  [[nodiscard]] Rank ranks(sim::LinkId link) const { return std::max(orbit_[link], Rank{1}); }

 private:
  [[nodiscard]] bool add(sim::LinkId link, sim::LinkId image);
  [[nodiscard]] bool is_touched(sim::LinkId link) const { return !touched_->empty() && (*touched_)[link]; }

  const sim::Cluster* cluster_;
  const std::vector<bool>* touched_;
  std::vector<sim::LinkId> next_;
  std::vector<sim::LinkId> previous_;
  std::vector<Rank> orbit_;         // of links: ranks on every orbit of those that use it
  std::vector<sim::LinkId> added_;  // since begin_region()
  Rank ranks_ = 1;
};

/// One turn.
struct Turn {
  std::vector<Rank> to;  ///< of each rank
  LinkShift links;
  Rank block = 0;  ///< it turns within blocks of so many places
  Rank step = 0;   ///< … by so many
  Rank radix = 1;  ///< after so many times every rank is back; where regions turn apart, those of the last one are

  /// Where it takes a place.
  [[nodiscard]] Rank place(Rank place) const { return place - place % block + (place % block + step) % block; }
};

class TurnSearch {
 public:
  /// What is referred to must outlive it.
  TurnSearch(sim::Cluster& cluster, const Coupling& coupling);

  /// Whether there is a turn that moves some ranks.
  [[nodiscard]] bool find();
  /// The turns that were found, which commute. The first one may be of any form, also the identity; the others turn all
  /// ranks within blocks.
  [[nodiscard]] const std::vector<Turn>& turns() const { return turns_; }
  /// The first link of every orbit in place of all.
  [[nodiscard]] sim::LinkFold links() const;

 private:
  /// Groups that carry out the same schedules.
  struct Shape {
    Rank ranks = 0;
    Rank period = 0;                               // a rotation by so many places carries all schedules into themselves
    std::vector<const Schedule*> schedules;        // different ones
    std::vector<std::pair<Rank, Rank>> transfers;  // source and destination, of the first `period` ranks
    std::vector<std::pair<Rank, Rank>> notifies;   // the same of posts; empty where no link is touched
  };
  struct Family {
    std::vector<std::uint32_t> shape_of;  // of groups
    std::vector<std::uint32_t> group_of;  // of ranks
    std::vector<Rank> member_of;          // of ranks
  };
  using Ranks = std::vector<Rank>;

  void add_family(const Coupling::Family& family);
  std::uint32_t add_shape(const std::vector<const Schedule*>& schedules, Rank ranks);
  /// Ranks that depend on each other, directly or not.
  [[nodiscard]] std::vector<Ranks> regions() const;
  /// Regions that are alike, or one.
  using AlikeRegions = std::vector<const Ranks*>;
  /// Turns regions by themselves, and those that are alike into each other, as far as they do.
  [[nodiscard]] bool turn_apart(const std::vector<Ranks>& parts);
  /// Keeps some of these as they are, and turns the others or keeps them; the number of the first ones for which what
  /// others do allows neither.
  [[nodiscard]] std::optional<std::size_t> turn_but(const std::vector<AlikeRegions>& lists,
                                                    const std::vector<bool>& kept);
  /// The regions, those that are alike together.
  [[nodiscard]] std::vector<AlikeRegions> alike(const std::vector<Ranks>& parts) const;
  /// Whether one region takes the place of the other, and that one its place. `turn` is left as it was.
  [[nodiscard]] bool change_places(const Ranks& one, const Ranks& other, Turn& turn) const;
  /// Takes each of these regions to the next one, and the last to the first one turned by the shortest step there is.
  [[nodiscard]] bool turn_in_circle(const AlikeRegions& list);
  /// Adds the turns within blocks, the largest blocks first, of servers at most.
  void find_others(const Ranks& all);
  /// Adds the turn within such blocks by the shortest step there is; false if there is none.
  [[nodiscard]] bool add_turn(const Ranks& all, const std::vector<Ranks>& by_kind, Rank block);
  /// Ranks that are left to simulate.
  [[nodiscard]] Rank orbits() const;
  /// Tries all steps of the first turn, the shortest first.
  [[nodiscard]] bool turn_region(const Ranks& region);
  /// Leaves the region as it is; false if what other regions do does not allow even that.
  [[nodiscard]] bool keep_region(const Ranks& region);
  /// Whether a turn in blocks by `step` carries the region; `turn` is it if so.
  [[nodiscard]] bool try_step(const Ranks& region, const std::vector<Ranks>& by_kind, Turn& turn) const;
  [[nodiscard]] bool carries(const Ranks& region, Turn& turn) const;
  [[nodiscard]] bool carries_groups(const Ranks& region, const Turn& turn) const;
  [[nodiscard]] bool carries_messages(const Ranks& region, const Turn& turn) const;
  [[nodiscard]] bool carries_routes(const Ranks& region, Turn& turn) const;
  [[nodiscard]] bool add_routes(const Communicator& group, const Shape& shape, Turn& turn) const;
  [[nodiscard]] bool add_copies(Rank rank, Turn& turn) const;
  [[nodiscard]] bool add_route(Rank source, Rank destination, Turn& turn) const;
  [[nodiscard]] Turn nothing() const;

  sim::Cluster& cluster_;
  const Coupling& coupling_;
  std::vector<Shape> shapes_;
  std::vector<Family> families_;
  std::vector<Turn> turns_;
};

}  // namespace hcclsim::hccl
