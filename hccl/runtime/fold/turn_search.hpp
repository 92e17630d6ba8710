#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hccl/runtime/fold/link_shift.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"

/// Looks for turns of the ranks that carry a Coupling and the platform into themselves (rank_orbits.hpp).
namespace hcclsim::hccl {

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
