#pragma once

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

/// Ranks that do the same in time as others, though no rotation of all ranks by one carries the schedule into itself.
///
/// *Half-turns.* In halving-doubling ranks exchange with the rank whose number differs in one bit. It looks the same
/// when all bits of a number are flipped alike; what is a rotation, too, is the flip of the highest bit: rank x of p
/// goes to x + p/2.
///
/// *Turns in blocks.* A hierarchy works among the b ranks of every server, and among ranks of the same place in all
/// servers. It looks the same from all places of a server: all ranks go one place further in their blocks of b, the
/// last one to the first place.
///
/// Such a turn carries a schedule into itself in time, task by task with the same kinds, lengths, peers and notifies of
/// the images, if
///
///   - every group is *fixed* or *carried*. In a fixed group the image of x has the position of x, and the members for
///     it are the images of the members for x. In a carried group, which holds every rank that the turn takes its
///     members to, the image of x has the position of x plus a constant, modulo the size. Groups of one rank are fixed.
///     For half-turns those are fixed whose blocks lie within half of the ranks; one is carried whose one block has all
///     p ranks or those s apart, an even number of them in their order. For turns in blocks those are fixed whose ranks
///     lie a multiple of b apart; one is carried that consists of the b ranks of a block, in
///     their order or another even one (even_order.hpp). A group of all
///     ranks is *mixed*: positions of images are just other ones. What it does, such as copies of a rank's own block,
///     must not depend on them as in a carried group, and has no peers;
///   - in a carried group peers are in the group itself, at an offset that does not depend on the position; in a fixed
///     group peers are in fixed groups. In half-turns a peer may be at the position with a bit flipped, in a group of
///     n = 2^k: (x + n/2) with a bit flipped is n/2 further than x with it flipped, modulo n, as n/2 is the highest
///     bit, whose flip is the same as adding n/2;
///   - rounds (rounds_in_time.hpp), notifies and numbers of halvings depend on positions in fixed groups at most;
///   - wherever a cut depends on the position in a carried group, all parts are equal: blocks are, and the slices of a
///     payload where the alignment times all parts, those of further cuts behind it left out, divides it. Where bytes
///     are does not matter for time;
///   - there is no root, no list of tasks by rank, no counts of blocks.
namespace hcclsim::hccl {

/// Used where period_in_time() (symmetry.hpp) finds no shorter period.
[[nodiscard]] bool half_turns_in_time(const Schedule& schedule);

/// By one place in blocks of `block` ranks, and so by any number of places.
[[nodiscard]] bool turns_in_blocks_in_time(const Schedule& schedule, Rank block);

}  // namespace hcclsim::hccl
