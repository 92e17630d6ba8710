#pragma once

#include "hccl/collective/algorithm.hpp"

/// AHC, asymmetric hierarchical concatenate: over groups (super-pods, or servers) that need not have the same size,
/// with the bandwidth within a group used to the full and little sent between them. Groups are numbered one after the
/// other; G of them, of m to M ranks, p in all, and L the least common multiple of their sizes.
///
/// *Owners.* Cut into L slices, what a group of g works on falls to its ranks by L/g neighbouring slices each, so every
/// slice has one owner in each group. Neighbouring slices with the same owners go together, as a *run*; there are at
/// most so many runs as ranks. Runs of one rank work at the same time, on queues of their own. With groups of 3 and 2,
/// L = 6, owners as numbers of ranks in their group:
///
///     slice             0  1  2  3  4  5
///     of the group of 3 0  0  1  1  2  2
///     of the group of 2 0  0  0  1  1  1
///     run               a  a  b  c  d  d    a and c on one queue, b and d on another
///
/// *Allreduce* of the slices of the payload: reduce-scatter in every group, allreduce of every run among its owners,
/// all-gather in every group, all of them NB (nb.hpp):
///
///     time  2(⌈log M⌉ + ⌈log G⌉)α + 2((M−1)/M + (G−1)/(G·m)·C)nβ + ((M−1)/M + (G−1)/(G·m))nγ
///
/// with C how much slower a byte is between groups (HCCL documentation, coll_algo_intro/AHC).
///
/// *Reduce-scatter* cuts every block into L slices:
///
///     1. reduce-scatter in every group (NB): a rank has its slices of all blocks, summed over the group
///     2. between groups, for every run: each group's blocks are summed at their own group's owner
///     3. in every group, all at once: each rank reads the slices of its own block from the others
///
/// *All-gather* goes back: the ranks of a group read slices of each other's blocks, owners pass on the blocks of their
/// groups, then an all-gather in every group. Step 2 is NB where all groups have the same size; otherwise it takes
/// G − 1 steps, in number s of which an owner in group i sends to group i+s. HCCL has both but publishes neither
/// recurrence nor formula: they are derived from the allreduce. With n bytes in all blocks:
///
///     time  ⌈log M⌉α + (M−1)/M·nβ  +  Sα + (p−m)/(p·m)·n·Cβ  +  α + n/(p·m)β    (and the γ of a reduce-scatter)
///
/// where S is ⌈log G⌉ or G − 1, and the last m is that of groups of more than one. Where groups differ, the simulation
/// does, too: of several runs of a rank the shorter ones hide their α behind the longer, and reductions by a core
/// overlap, while the formulas add them; among three and more groups, owners of a step of all-gather or reduce-scatter
/// wait for slower ones.
namespace hcclsim::hccl {

/// Throw Error(bad_input, "algorithm") if the groups need more than 2^24 slices, or different ones so many transfers
/// between them that no schedule should have them.
[[nodiscard]] Schedule ahc_allreduce(const Operation& operation, const UnevenGroups& groups);
[[nodiscard]] Schedule ahc_reduce_scatter(const Operation& operation, const UnevenGroups& groups);
[[nodiscard]] Schedule ahc_all_gather(const Operation& operation, const UnevenGroups& groups);

}  // namespace hcclsim::hccl
