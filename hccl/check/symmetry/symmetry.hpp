#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/schedule/walk.hpp"

/// Schedules that look the same from every rank: every rank does what its left neighbour does, one rank further (a
/// *rotation*); or every server does what the server before it does, one server further. Then one rank is checked in
/// place of p, or one server in place of all, so that a ring or a hierarchy of 16384 ranks takes seconds.
///
/// *When.* A rotation by m ranks (its *period*; m divides p) is a pair of maps: rank x becomes x+m (modulo p), and byte
/// b of a buffer of x becomes byte f(b) of the same buffer of x+m. After G = p/m *turns* every rank is back.
///
/// First m = 1. f moves the blocks of a buffer that holds all blocks, or the p equal slices into which a payload of one
/// block is cut, by one place, and leaves everything else alone. Scratch memory is such a buffer unless it is only used
/// in slots. Rotation::of concludes from the closed forms that both maps carry the program of every rank into that of
/// the next, task by task:
///
///   - every group consists of all ranks in their own order; numbers of rounds, notify slots and scratch slots do not
///     depend on the position; peers are offsets, which do not depend on it either;
///   - a byte range begins with a cut into p blocks (or p slices) whose index is the position plus something that does
///     not depend on the position, and none of the further cuts depends on it; or the range is where f moves nothing,
///     and no cut depends on the position. Such a range of x+1 is the image of that of x, piece after piece;
///   - a task moves bytes from a moved range to a moved range, or to one that f leaves alone. Whole buffers that f
///     moves have their pieces in the order of the bytes, not of the rank, so they occur only with each other;
///   - the p slices have equal lengths: p times the alignment divides the payload, and the window if there is one;
///   - the collective has no root and no counts, so that the rotation also maps what it starts from and has to reach;
///     it moves bytes, so it is not a barrier;
///   - f keeps the size of a buffer that it moves, so what is in bounds for one rank is in bounds for its images.
///
/// With m > 1:
///
///   - a group is *fixed* if its blocks lie within the m ranks of a period: then x and x+m have the same position in
///     it, and its members for x+m are those for x, m further. It is *turned* if it consists of ranks m apart, whose
///     positions go up by one. Or it has all ranks in order, whose positions go up by m. Closed forms of strands of
///     fixed groups may depend on the position, and their peers are in fixed groups. Those of the other strands are as
///     for m = 1, and their peers are in groups of the same form;
///   - of p blocks, f moves the block at a position among all ranks, and the run of m blocks at a position among the G
///     positions of a turned group. In a payload of one block, f moves the G parts of a *turned* cut, whose position
///     is that in a turned group. A cut whose position is that in a fixed group picks the same part for x and x+m. Such
///     cuts may come before the turned cut; they pick one part each, out of K parts in all. These parts are *regions*,
///     and f moves the G slices of each region by one place;
///   - ranges without a turned cut are whole regions, one after the other; so is a slot of scratch memory if f moves
///     it. They occur only with each other, like whole buffers for m = 1, which are a single region;
///   - m is read off the groups, one of which goes over all ranks with a stride of m.
///
/// *Why one rank is enough,* and for m > 1 the first m ranks: below, rank 0 stands for these m ranks, x+1 for x+m, and
/// p images for G. Let R be the rotation; it permutes ranks, tasks, bytes, notifies and contributions.
///
///   L0  Form concerns one task at a time, and R keeps lengths, bounds, alignment and overlap.
///   L1  The uses of notify n of rank x are the waits of x and posts of others; R maps them to those of rank x+1. So
///       all ranks have the same counts as rank 0. The p images of a post of rank 0 go to p different ranks, so rank 0
///       has the counts of its own program.
///   L2  *Lockstep*: consider the run in which all ranks do the same task one after the other, then all do the next
///       task of the representative's run. From a state that R maps to itself: if rank 0 can do its task, all can, and
///       none prevents another from it, because waits clear notifies of their own rank, posts set notifies of p
///       different ranks, and queues, stages and the host belong to one rank. R maps the state after it to itself
///       again. By induction, the run of the representative, in which a post to any rank sets its own notify, is a run
///       of the whole program: the whole program ends, stops or loses a notify where the representative does. That
///       this one run decides for all runs is shown in docs/checker.md, for the whole program.
///   L3  R keeps happens-before, so whether event e of rank x is before event f of rank y depends only on e, f and
///       y − x. Two accesses to memory of rank y are ordered if their images, turned by −y, are, and these touch
///       memory of rank 0. So it is enough to look at all accesses to the memory of rank 0, by all ranks, which are p
///       images of the tasks of rank 0, with clocks that have an entry for every distance (symmetric_checks.hpp).
///   L4  Without races all runs give the same result, so the lockstep decides. In it the memory of rank y always holds
///       the image of what the memory of rank 0 holds: this is true in the beginning, and every task keeps it. So it
///       is enough to follow the contents of rank 0, and the contract of rank y is the image of that of rank 0.
///   L5  Trees of reduction are compared exactly, on all ranks (rotating_trees.hpp).
///   L7  Steps, bytes sent and bytes reduced of rank y are those of rank 0.
///
/// For m > 1 the ranks of a period are in different states. The lockstep then advances all images of one of them at a
/// time, and a rank may end before another rank of its period touches its memory, which L3 checks.
///
/// tests/hccl/check/symmetry/checker_symmetry_test.cpp compares both ways of checking, on right and wrong schedules.
namespace hcclsim::hccl {

class Rotation {
 public:
  /// The rotation that carries the schedule into itself, or nothing if it cannot be read off the closed forms.
  [[nodiscard]] static std::optional<Rotation> of(const Schedule& schedule);

  [[nodiscard]] Rank ranks() const { return ranks_; }
  /// Ranks by which one turn moves; the first period() ranks stand for all.
  [[nodiscard]] Rank period() const { return period_; }
  /// Images of a rank, itself included.
  [[nodiscard]] Rank turns() const { return ranks_ / period_; }
  /// A rank is the image of rank representative(rank) by turn_of(rank) turns.
  [[nodiscard]] Rank representative(Rank rank) const { return rank % period_; }
  [[nodiscard]] Rank turn_of(Rank rank) const { return rank / period_; }
  /// Numbers of turns, 0 … turns−1: the same number backwards, and the turns from one number to another.
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
  /// Byte b of a buffer lies in region b/length and moves up by `step` within it, cyclically.
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

/// The least number m of ranks that divides them all, such that x+m does in time what x does: the same tasks of the
/// same lengths, with the peers and notifies m ranks further. It asks less than a rotation: what is said above of
/// groups, peers, notifies and cuts into equal parts must hold, but not where bytes are. Scratch memory may hold blocks
/// at one time and slots at another; rounds are taken together (rounds_in_time.hpp); a turned group may have another
/// even order (even_order.hpp), so that positions go up by another constant. Nothing if closed forms do not
/// show one.
[[nodiscard]] std::optional<Rank> period_in_time(const Schedule& schedule);

/// Whether the same rotation by one rank carries both schedules into themselves. Then in both of them every rank does
/// the image of what rank 0 does; so if rank 0 does the same in both, all ranks do.
[[nodiscard]] bool rotate_alike(const Schedule& first, const Schedule& second);

}  // namespace hcclsim::hccl
