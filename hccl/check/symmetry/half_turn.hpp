#pragma once

#include "hccl/schedule/schedule.hpp"

/// Schedules in which ranks exchange with the rank whose number differs in one bit (halving-doubling) look the same
/// when all bits of a number are flipped alike, but no rotation by one rank carries them into themselves: 0 meets 1, 1
/// does not meet 2. What is a rotation, too, is the flip of the highest bit: by half of the ranks.
///
/// The half-turn takes rank x of p to x + p/2. In time it carries a schedule into itself, task by task with the same
/// kinds, lengths, peers and notifies half of the ranks further, if
///
///   - every group is *fixed*, its blocks lying within half of the ranks or having one rank each, so that the members
///   and
///     positions for x + p/2 are those for x; or it is *halved*: its one block has all p ranks or those s apart, an
///     even number n of them in their order, so that the position of x + p/2 is that of x plus n/2, modulo n;
///   - in a halved group peers are in the group itself: at an offset that does not depend on the position; or with a
///   bit
///     flipped, where n is a power of two. For then (x + n/2) with a bit flipped is n/2 further than x with it flipped,
///     modulo n, as n/2 is the highest bit, whose flip is the same as adding n/2. In a fixed group peers are in fixed
///     groups;
///   - rounds, notifies and numbers of halvings depend on positions in fixed groups at most;
///   - wherever a cut depends on the position in a halved group, all parts are equal: blocks are, and the slices of a
///     payload where the alignment times all parts divides it. Where bytes are does not matter for time;
///   - there is no root, no list of tasks by rank, no counts of blocks.
///
/// It is used where period_in_time() (symmetry.hpp) finds no shorter period.
namespace hcclsim::hccl {

[[nodiscard]] bool half_turns_in_time(const Schedule& schedule);

}  // namespace hcclsim::hccl
