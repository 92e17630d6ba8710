#pragma once

#include <vector>

#include "hccl/collective/algorithm.hpp"

/// Composition over levels: ranks form groups (the NPUs of a server), groups form groups (the servers of a super-pod),
/// and each level has links and an algorithm of its own. Ranks are numbered group by group, and all groups of a level
/// have the same size. Level 0 is the innermost; s(l) is the size of its groups, d(l) the product of the sizes below,
/// and rank r has the digit x(l) = r / d(l) mod s(l). On level l, ranks that differ only in digit x(l) work with each
/// other.
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
/// (HCCL's documentation, "hierarchical communication principles".) An allreduce cuts its payload again on every level,
/// so that most bytes move inside, where links are fast: level l works on n / d(l) bytes, namely slice x(0) of s(0), of
/// that slice x(1) of s(1), and so on. In the other collectives block r belongs to rank r: a position on level l is
/// responsible for d(l) consecutive blocks, those of the ranks with the same digits from level l upwards, so that
/// transfers between servers stay contiguous. With n bytes in the whole payload and p ranks, level l works on n · s(l)
/// · d(l) / p bytes, so outer levels work on more:
///
///     time  allreduce       RS(s0, n) + RS(s1, n/s0) + … + AR(sL, n/dL) + … + AG(s1, n/s0) + AG(s0, n)
///           reduce-scatter  RS(sL, n) + … + RS(s0, n·s0/p)
///           allgather       AG(s0, n·s0/p) + … + AG(sL, n)
///
/// RS, AR and AG are the algorithms' formulas on each level's links; steps and bytes of the levels add up in the same
/// way. Collectives with a root are similar, but their scatter and gather involve only some groups of a level: a
/// broadcast scatters in the root's server only, then in its super-pod, between the ranks at each place; and a scatter
/// between servers is between the ranks at the root's place.
///
/// An alltoall moves all of n on each of its two levels (table in the same place of HCCL's documentation). With servers
/// of m ranks, rank x first reads from every rank y of its server the blocks x, x+m, x+2m, …, which are for the ranks
/// at its place in all servers, into part y of its scratch memory. Then it reads, from the rank at its place in every
/// server, block x' of all parts, where x' is its own server: the blocks that this server has for it. Blocks must have
/// the same size.
namespace hcclsim::hccl {

/// For all collectives except send-recv and barrier. Throws Error(bad_input, "hierarchical") if the algorithm of a
/// level cannot do its part, and for an alltoall over more than two levels or with blocks that differ.
[[nodiscard]] Schedule hierarchical(const Operation& operation, const std::vector<HierarchyLevel>& levels);

}  // namespace hcclsim::hccl
