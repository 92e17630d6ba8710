#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/schedule/walk.hpp"

/// Schedules whose ranks are alike by rotation: every rank does what its left neighbour does, one rank further. Then
/// one rank is checked in place of p, so that a ring of 16384 ranks takes seconds.
///
/// *When.* A rotation is a pair of maps: rank x becomes x+1 (modulo p), and byte b of a buffer of x becomes byte f(b)
/// of the same buffer of x+1. f turns the blocks of a buffer that holds all blocks, or the p equal slices into which a
/// payload of one block is cut, by one place, and leaves the rest alone. Scratch memory is such a buffer if none of it
/// is used in slots. Rotation::of reads off the closed forms that
/// both maps carry the program of every rank into that of the next, task by task:
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
///     bytes, hence is no barrier.
///
/// *Why one rank is enough.* Let R be the rotation; it permutes ranks, tasks, bytes, notifies and contributions.
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
/// tests/hccl/checker_symmetry_test.cpp compares both ways of checking, on right and wrong schedules.
namespace hcclsim::hccl {

class Rotation {
 public:
  /// The rotation that carries the schedule into itself, or nothing if it cannot be read off the closed forms.
  [[nodiscard]] static std::optional<Rotation> of(const Schedule& schedule);

  [[nodiscard]] Rank ranks() const { return ranks_; }
  /// `a` ranks to the left of `b`, as a distance 0 … ranks−1.
  [[nodiscard]] Rank distance(Rank a, Rank b) const { return b >= a ? b - a : b + ranks_ - a; }
  [[nodiscard]] Rank opposite(Rank by) const { return by == 0 ? 0 : ranks_ - by; }

  /// Images of a byte range of some rank in the memory of the rank `by` places to its right, piece by piece.
  void turn(const ByteRange& range, Rank by, std::vector<ByteRange>& pieces) const {
    turn(turning_[static_cast<std::size_t>(range.buffer)], range, by, pieces);
  }
  /// Images of places of a contribution (contract.hpp): offset and length of `range`, whose buffer has no meaning.
  void turn_places(const ByteRange& range, Rank by, std::vector<ByteRange>& pieces) const {
    turn(places_, range, by, pieces);
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

  void turn(const Turning& turning, const ByteRange& range, Rank by, std::vector<ByteRange>& pieces) const;

  Rank ranks_ = 1;
  std::array<Turning, buffer_kinds> turning_{};
  Turning places_;
};

/// One rotation carries both schedules into themselves. Then what any rank does is in both the image of what rank 0
/// does, and where rank 0 does the same in both, all ranks do.
[[nodiscard]] bool rotate_alike(const Schedule& first, const Schedule& second);

}  // namespace hcclsim::hccl
