#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/comm/folded_class.hpp"
#include "hccl/schedule/schedule.hpp"
#include "sim/cluster.hpp"

/// Ranks that provably do the same at the same dates, of which one is simulated in place of all.
///
/// *When.* A turn is a permutation s of the ranks that carries everything on which dates depend into itself:
///
///   - rank s(r) runs the program of r, starts when r does and is as fast (their *kind*);
///   - s carries every group of ranks into a group of the same family which carries out the same schedules, and places
///     in it go up by a constant that is a multiple of their periods in time (check/symmetry/symmetry.hpp): so
///     the schedules, too, are carried into themselves, task by task;
///   - a message from r to r + d goes from s(r) to s(r + d);
///   - for every pair of ranks between which bytes go, the route of the images has as many links, the same latency,
///     transport and factors, and s maps link i of the one to link i of the other, one to one over all routes, to a
///     link of the same capacity, shared or not; and likewise for the way from the CPU of a server to its NPU, where a
///     rank has bytes copied from there.
///
/// *Why it is exact.* Let all ranks be in states that s carries into each other, as they are in the beginning. Kernels,
/// posts, waits and set-ups have the same dates in the images. Transfers under way are carried into each other with
/// what is left of them, along links that are, so the max-min fair rates, of which there is one solution, are equal,
/// too. Hence it stays so at every date, and one rank of each orbit under s says what all do. All orbits under a turn
/// have as many ranks, G. A notify of a rank is set by the images of posts to the rank that stands for it, and a link
/// whose orbit has k links carries G/k times what the representatives send over the orbit: one link in place of the
/// orbit gets the capacity k/G of one. What is not shared (FATPIPE) keeps its capacity.
///
/// *Several turns.* Where servers are alike they turn, and where the NPUs within all of them are alike, too, these turn
/// by themselves: 8 NPUs in each of 64 servers have one orbit. Turns of different *radix* commute: of the ranks of a
/// kind in their order, one turn takes place x to x + y in every block of b places, another one does so with blocks of
/// y places. What is said above holds for each of them, hence for all that they generate, of which there are G. Within
/// blocks a group may also be carried into itself with its places turned in the same blocks, if that carries its
/// schedules into themselves (check/symmetry/turns_in_time.hpp).
///
/// Ranks that have nothing to do with each other may turn apart, some of them not at all: what one slow NPU keeps from
/// turning are the ranks that depend on it. Such *regions* have no links in common, unless they turn together: of
/// regions that are alike one turn takes each to the next one, and the last to the first one, turned by a step. So one
/// rank stands for all of them where in each of them one does.
///
/// *What is not of these ranks*, faults and transfers of other jobs, does not turn. So a link that it touches stays
/// where it is, and no rank that uses one stands for another, also not by a notify that would wait where the link is
/// cut; the whole region is simulated. All others have no links in common with what is left: their rates are as if they
/// were alone.
namespace hcclsim::hccl {

/// What makes ranks depend on each other.
struct Coupling {
  /// Groups of ranks, each rank in at most one of them.
  struct Family {
    std::vector<const Communicator*> groups;
    std::vector<std::vector<const Schedule*>> schedules;  ///< of each group, of equal groups the same objects
  };
  std::vector<std::uint32_t> kinds;                ///< of each rank
  std::vector<Family> families{};                  ///< of groups
  std::vector<std::vector<std::int64_t>> offsets;  ///< of each kind: a rank sends to those so many places further
  std::vector<const sim::Route*>
      copies{};  ///< of each rank: the way of its copies from the host, null without; or empty
  /// Of each link whether it carries something of another job, or a fault changes it. Such a link is like no other.
  /// Empty: there are none.
  std::vector<bool> touched{};
};

/// The members of a group that are simulated: all of them, or those that stand for others.
struct Seats {
  std::vector<Rank> members;   ///< ranks of the group, ascending
  std::vector<Rank> npus;      ///< of each of them: the rank of the cluster that does its part
  std::vector<Rank> place_of;  ///< of each member of the group: place in `members` of who stands for it
  std::uint64_t groups = 1;    ///< that do the same, this one included

  /// All members of a group.
  [[nodiscard]] static Seats all(const Communicator& group);
};

class TurnSearch;

class RankOrbits {
 public:
  /// The orbits under the turns that leave the fewest ranks to simulate, as far as turns of a simple form are found: of
  /// ranks of one kind, in their order, each becomes the one that is a number of places further, or so within blocks.
  /// Those in `preferred` stand for their orbits. Nothing if all ranks are different, or if to find out would take too
  /// long.
  [[nodiscard]] static std::optional<RankOrbits> find(sim::Cluster& cluster, const Coupling& coupling,
                                                      std::span<const Rank> preferred);

  [[nodiscard]] Rank ranks() const { return static_cast<Rank>(orbit_of_.size()); }
  /// How many are simulated.
  [[nodiscard]] Rank orbits() const { return static_cast<Rank>(first_.size()); }
  /// The one of its orbit that is simulated.
  [[nodiscard]] Rank representative(Rank rank) const { return members_[first_[orbit_of_[rank]]]; }
  [[nodiscard]] bool represents(Rank rank) const { return representative(rank) == rank; }
  /// Ranks in its orbit.
  [[nodiscard]] Rank size(Rank rank) const;
  /// All orbits, in the order of their first ranks.
  [[nodiscard]] std::vector<FoldedClass> classes() const;
  /// Source and destination turned back until the source is the one that is simulated.
  [[nodiscard]] std::pair<Rank, Rank> turned_back(Rank source, Rank destination) const;
  /// Calls visit(source, destination) for a pair and all its images.
  template <typename Visit>
  void for_each_image(Rank source, Rank destination, const Visit& visit) const {
    for (Rank turns = 0; turns < size(source); ++turns) visit(turned(source, turns), turned(destination, turns));
  }
  /// The numbers of the groups of a family that are simulated, with their seats; of groups that do the same that of
  /// `own`.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Seats>> fold(std::span<const Communicator* const> groups,
                                                                  Rank own = 0) const;
  /// For Cluster::fold().
  [[nodiscard]] const sim::LinkFold& links() const { return links_; }

 private:
  RankOrbits(const TurnSearch& search, std::span<const Rank> preferred);
  [[nodiscard]] Rank turned(Rank rank, Rank turns) const {
    const Rank ranks = size(rank);
    return members_[first_[orbit_of_[rank]] + sum(place_[rank], turns % ranks, ranks)];
  }
  /// Of numbers of turns, which have a digit for each turn: the last turn's is the lowest, the first turn's modulo the
  /// ranks of an orbit over the radices of the others.
  [[nodiscard]] Rank sum(Rank first, Rank second, Rank ranks) const;
  /// What undoes so many turns.
  [[nodiscard]] Rank back(Rank turns, Rank ranks) const;

  std::vector<std::uint32_t> orbit_of_;  // of ranks
  std::vector<Rank> place_;              // of ranks: turns from the representative to it
  std::vector<Rank> radices_;            // of the turns but the first one, the last one's first
  std::vector<std::uint32_t> first_;     // of orbits: where its ranks begin in members_
  std::vector<Rank> members_;            // in the order of their places
  sim::LinkFold links_;
};

}  // namespace hcclsim::hccl
