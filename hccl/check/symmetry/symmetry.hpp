#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/schedule/walk.hpp"

/// Schedules whose ranks are alike by rotation: every rank does what its left neighbour does, one rank further; or
/// every server what the server before it does, one server further. Then one rank is checked in place of p, or one
/// server in place of all, so that a ring and a hierarchy of 16384 ranks take seconds.
///
/// *When.* A rotation by m ranks (its *period*; m divides p) is a pair of maps: rank x becomes x+m (modulo p), and byte
/// b of a buffer of x becomes byte f(b) of the same buffer of x+m. There are G = p/m *turns* until every rank is back.
/// First m = 1:
/// f turns the blocks of a buffer that holds all blocks, or the p equal slices into which a payload of one block is
/// cut, by one place, and leaves the rest alone. Scratch memory is such a buffer if it is not used in slots alone.
/// Rotation::of reads off the closed forms that both maps carry the program of every rank into that of the next, task
/// by task:
///
///   - every group is that of all ranks in their own order; counts of rounds, notify slots and scratch slots do not
///     depend on the position; peers are offsets that do not either;
///   - a byte range begins with a cut into p blocks (or p slices) whose index is position + what does not depend on the
///     position, all further cuts do not depend on it; or it lies where f moves nothing and no cut depends on the
///     position. Such a range of x+1 is the image of that of x, piece after piece;
///   - a task moves from a turned range to a turned range or to one that f leaves alone. Whole buffers that f turns
///   have
///     their pieces in the order of the bytes, not of the rank, so they go with each other alone;
///   - the p slices are equally long: p times the alignment divides the payload, and the window if there is one;
///   - the collective has no root and no counts, so that what it starts from and has to reach turns along, too; it
///   moves
///     bytes, hence is no barrier;
///   - a buffer that f turns has a size that f keeps: what is in bounds for one rank is so for its images.
///
/// With m > 1:
///
///   - a group is *fixed* if its blocks lie within the m ranks of a period: then x and x+m have one position in it, and
///     its members for x+m are those for x, m further. Or it is *turned*: the ranks m apart, whose positions go up by
///     one. Or it has all ranks in order, whose positions go up by m. Closed forms of strands of fixed groups may
///     depend on the position, and their peers are in fixed groups; those of the others are as for m = 1, their peers
///     in groups of the same form;
///   - of p blocks f turns the one at a position among all ranks, and the run of m at one among the G of a turned
///   group.
///     In a payload of one block f turns the G parts of a cut whose position is that in a turned group. A cut whose
///     position is that in a fixed group picks the same part for x and x+m. Such cuts may come before the turned one
///     there, of one part each and into K parts in all: these are *regions*, and f turns the G slices of each region by
///     one place;
///   - ranges without a turned cut are some whole regions, one after the other, a slot of scratch memory too where f
///     turns that; they go with each other alone, as whole buffers for m = 1, which are their own single region;
///   - m is read off the groups, one of which goes over all ranks with a stride of m.
///
/// *Why one rank is enough,* and the first m ranks are for m > 1: rank 0 stands for them, x+1 for x+m, p images for G.
/// Let R be the rotation; it permutes ranks, tasks, bytes, notifies and contributions.
///
///   L0  Form speaks of one task at a time, and R keeps lengths, bounds, alignment and overlap.
///   L1  The uses of notify n of rank x are the waits of x and posts of others; R maps them to those of rank x+1, so
///   all
///       ranks have the same counts as rank 0, and rank 0 has those of its own program: its p images post each to one
///       rank.
///   L2  *Lockstep*: consider the run in which all ranks do the same task one after the other, then all the next task
///       of the representative's run. From a state that R maps to itself, if rank 0 can do its task, all can, and no
///       rank takes that away from another: waits clear notifies of their own rank, posts set those of p different
///       ranks, and queues, stages and the host belong to one rank. The state after it is mapped to itself again. So by
///       induction the run of the representative, in which a post to any rank sets its own notify, is a run of the
///       whole program: it ends, stops or loses a notify where that one does. That one run decides for all is the
///       argument of docs/checker.md, which holds for the whole program.
///   L3  R keeps happens-before, so whether event e of rank x is before event f of rank y depends on e, f and y − x
///       alone. Two accesses to memory of rank y are ordered if their images, turned by −y, are, and these touch memory
///       of rank 0. Hence it is enough to look at all accesses to the memory of rank 0, by all ranks, which are p
///       images of the tasks of rank 0, with clocks that have an entry for every distance (symmetric_races.hpp).
///   L4  Without races all runs leave the same, so that of the lockstep decides. In it the memory of rank y always
///   holds
///       the image of what the memory of rank 0 holds: true in the beginning, and kept by every task. So it is enough
///       to carry along the contents of rank 0, and the contract of rank y is the image of that of rank 0.
///   L5  Trees of reduction are compared exactly, on all ranks (rotating_trees.hpp).
///   L7  Steps, bytes sent and bytes reduced of rank y are those of rank 0.
///
/// For m > 1 the ranks of a period are in different states, so the lockstep goes on with all images of one of them at a
/// time, and a rank may end before another of its period touches its memory, which L3 looks at.
///
/// tests/hccl/check/checker_symmetry_test.cpp compares both ways of checking, on right and wrong schedules.
namespace hcclsim::hccl {

class Rotation {
 public:
  /// The rotation that carries the schedule into itself, or nothing if it cannot be read off the closed forms.
  [[nodiscard]] static std::optional<Rotation> of(const Schedule& schedule);

  [[nodiscard]] Rank ranks() const { return ranks_; }
  /// Ranks by which one turn goes on; the first so many stand for all.
  [[nodiscard]] Rank period() const { return period_; }
  /// Images of a rank, itself included.
  [[nodiscard]] Rank turns() const { return ranks_ / period_; }
  /// A rank is the image of rank representative(rank) by turn_of(rank) turns.
  [[nodiscard]] Rank representative(Rank rank) const { return rank % period_; }
  [[nodiscard]] Rank turn_of(Rank rank) const { return rank / period_; }
  /// Numbers of turns, 0 … turns−1: as many back, and from the one to the other.
  [[nodiscard]] Rank back(Rank turns) const { return turns == 0 ? 0 : this->turns() - turns; }
  [[nodiscard]] Rank from_to(Rank from, Rank to) const { return to >= from ? to - from : to + turns() - from; }
  /// The image of a rank.
  [[nodiscard]] Rank image(Rank rank, Rank turns) const {
    return static_cast<Rank>((rank + std::uint64_t{turns} * period_) % ranks_);
  }

  /// Images of a byte range of some rank in the memory of its image by `turns`, piece by piece.
  void turn(const ByteRange& range, Rank turns, std::vector<ByteRange>& pieces) const {
    turn(turning_[static_cast<std::size_t>(range.buffer)], range, turns, pieces);
  }
  /// Images of places of a contribution (contract.hpp): offset and length of `range`, whose buffer has no meaning.
  void turn_places(const ByteRange& range, Rank turns, std::vector<ByteRange>& pieces) const {
    turn(places_, range, turns, pieces);
  }

  /// Both move the same bytes to the same places.
  friend bool operator==(const Rotation&, const Rotation&) = default;

 private:
  /// Byte b of a buffer lies in the region b/length, in which it moves up by `step`, round and round.
  struct Turning {
    Bytes length = 0;  // 0: nothing moves
    Bytes step = 0;
    friend bool operator==(const Turning&, const Turning&) = default;
  };

  void turn(const Turning& turning, const ByteRange& range, Rank turns, std::vector<ByteRange>& pieces) const;
  /// The buffers that turn hold whole regions.
  [[nodiscard]] bool fits(const Schedule& schedule) const;

  Rank ranks_ = 1;
  Rank period_ = 1;
  std::array<Turning, buffer_kinds> turning_{};
  Turning places_;
};

/// One rotation by one rank carries both schedules into themselves. Then what any rank does is in both the image of
/// what rank 0 does, and where rank 0 does the same in both, all ranks do.
[[nodiscard]] bool rotate_alike(const Schedule& first, const Schedule& second);

}  // namespace hcclsim::hccl
