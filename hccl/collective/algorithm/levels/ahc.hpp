#pragma once

#include "hccl/collective/algorithm.hpp"

/// AHC, asymmetric hierarchical concatenate: works over groups (super-pods or servers) that may differ in size; it uses
/// the full bandwidth within a group and sends little between groups. There are G groups with m to M ranks each, p
/// ranks in all, numbered group by group; L is the least common multiple of the sizes.
///
/// *Owners.* The data of a group of g ranks is cut into L slices, and each rank owns L/g neighbouring slices; so every
/// slice has one owner in each group. Neighbouring slices with the same owners form a *run*; there are at most as many
/// runs as ranks. The runs of one rank work at the same time, on separate queues. With groups of 3 and 2 ranks, L = 6,
/// and owners given by their numbers in their group:
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
/// where C is the factor by which a byte is slower between groups (HCCL documentation, coll_algo_intro/AHC).
///
/// *Reduce-scatter* cuts every block into L slices:
///
///     1. reduce-scatter in every group (NB): a rank has its slices of all blocks, summed over the group
///     2. between groups, for every run: each group's blocks are summed at their own group's owner
///     3. in every group, all at once: each rank reads the slices of its own block from the others
///
/// *All-gather* is the reverse: the ranks of a group read slices of each other's blocks, owners pass on the blocks of
/// their groups, then there is an all-gather in every group. Step 2 is NB if all groups have the same size; otherwise
/// it takes G − 1 steps, and in step s an owner in group i sends to group i+s. HCCL has both collectives but publishes
/// neither recurrence nor formula: they are derived from the allreduce. With n bytes in all blocks:
///
///     time  ⌈log M⌉α + (M−1)/M·nβ  +  Sα + (p−m)/(p·m)·n·Cβ  +  α + n/(p·m)β    (and the γ of a reduce-scatter)
///
/// where S is ⌈log G⌉ or G − 1, and the last m is the size of the smallest group of more than one rank. If groups
/// differ in size, the simulation differs from the formulas: of several runs of a rank, the shorter ones hide their α
/// behind the longer ones, and reductions by a core overlap, while the formulas add them; with three or more groups,
/// owners in a step of all-gather or reduce-scatter wait for slower ones.
namespace hcclsim::hccl {

/// For an allreduce, a reduce-scatter or an allgather. Throws Error(bad_input, "algorithm") if the groups need more
/// than 2^24 slices, or if groups of different sizes need more transfers between them than a schedule should have.
[[nodiscard]] Schedule ahc(const Operation& operation, const UnevenGroups& groups);

}  // namespace hcclsim::hccl
