#pragma once

#include <vector>

#include "hccl/collective/algorithm.hpp"

/// Composition over levels: ranks form groups (the NPUs of a server), groups form groups (the servers of a super-pod),
/// and each level has links and an algorithm of its own. Ranks are numbered group by group, and all groups of a level
/// have the same size. Level 0 is the innermost; s(l) is the size of its groups, d(l) the product of the sizes below,
/// and rank r has the digit x(l) = r / d(l) mod s(l). On level l the ranks that differ in that digit alone work with
/// each other.
///
///     collective      levels, one after the other
///     allreduce       reduce-scatter 0, 1, …; allreduce of the outermost; all-gather …, 1, 0
///     reduce-scatter  reduce-scatter from the outermost to 0
///     allgather       all-gather from 0 to the outermost
///     broadcast       scatter 0, 1, …; broadcast of the outermost; all-gather …, 1, 0
///     reduce          reduce-scatter 0, 1, …; reduce of the outermost; gather …, 1, 0
///     scatter         scatter from the outermost to 0
///     gather          gather from 0 to the outermost
///     alltoall        alltoall 0; alltoall 1
///
/// (HCCL's documentation, "hierarchical communication principles".) An allreduce cuts its payload anew on every level,
/// so that most bytes move inside, where links are fast: level l works on n / d(l) bytes, slice x(0) of s(0), of that
/// slice x(1) of s(1), …  Of the others block r belongs to rank r: a position on level l is responsible for d(l)
/// consecutive blocks, those of the ranks that share its digits from there on upwards, so that transfers between
/// servers stay contiguous. With n the bytes of the whole payload and p ranks, level l works on n · s(l) · d(l) / p
/// bytes, and has the more of it the farther out it is:
///
///     time  allreduce       RS(s0, n) + RS(s1, n/s0) + … + AR(sL, n/dL) + … + AG(s1, n/s0) + AG(s0, n)
///           reduce-scatter  RS(sL, n) + … + RS(s0, n·s0/p)
///           allgather       AG(s0, n·s0/p) + … + AG(sL, n)
///
/// and the same with a root, where scatter and gather involve few groups of a level: as long as the payload is at the
/// root, or comes to it, a broadcast scatters in the root's server alone, then in its super-pod, between the ranks of
/// each place, and a scatter between servers is between the ranks at the root's place. All this the algorithms'
/// formulas on each level's links. The steps and the bytes of the levels add up in the same way.
///
/// An alltoall moves all of n on each of its two levels (table of HCCL's documentation in the same place). Of servers
/// of m ranks, rank x reads of every rank y of its server the blocks x, x+m, x+2m, …, those for the ranks in its place
/// everywhere, into part y of its scratch memory; then it reads of the rank in its place of every server block x' of
/// all parts, x' being its own server, which are what that server has for it. Blocks have to be alike.
namespace hcclsim::hccl {

/// Of any collective but send-recv and barrier. Throws Error(bad_input, "hierarchical") if the algorithm of a level
/// does not do its part, or for an alltoall over more than two levels or of blocks that differ.
[[nodiscard]] Schedule hierarchical(const Operation& operation, const std::vector<HierarchyLevel>& levels);

}  // namespace hcclsim::hccl
