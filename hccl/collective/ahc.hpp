#pragma once

#include "hccl/collective/algorithm.hpp"

/// AHC, asymmetric hierarchical concatenate: an allreduce over groups (servers) that need not have the same size, with
/// the bandwidth within a group used to the full and little sent between them. L is the least common multiple of the
/// sizes of the G groups, and the payload is cut into L slices:
///
///     1. reduce-scatter in every group; a rank of a group of g is left with L/g neighbouring slices
///     2. allreduce of every slice among its owners, one of each group
///     3. all-gather in every group
///
/// All of them are rings here; in step 2 each slice is cut into G parts. Neighbouring slices with the same owners go
/// together, at most so many *runs* as there are ranks. A rank takes part in one run at a time; runs without common
/// owners are at the same time. With groups of 3 and 2 and L = 6, owners are numbers of ranks in their group:
///
///     slice             0  1  2  3  4  5
///     of the group of 3 0  0  1  1  2  2
///     of the group of 2 0  0  0  1  1  1
///     run               a  a  b  c  d  d    a and c are at the same time, then b and d
///
/// With m ranks in the smallest group, M in the largest, a rank sends 2 (g − 1)/g · n in its group of g and at most
/// 2 (G − 1)/(G·m) · n to others, as in HCCL's formula: 2 (M − 1)/M · nβ + 2 (G − 1)/(G·m) · C · nβ, C being how much
/// slower a byte is between groups. The formula's 2 (⌈log M⌉ + ⌈log G⌉) α are those of NB in place of rings, with all
/// runs at the same time; here they are 2 (M − 1) α and 2 (G − 1) α for each of the runs of a rank.
/// (hicann/hccl, coll_algo_intro/AHC)
namespace hcclsim::hccl {

/// Throws Error(bad_input, "algorithm") if the groups need more than 2^24 slices.
[[nodiscard]] Schedule ahc_allreduce(const Operation& operation, const UnevenGroups& servers);

}  // namespace hcclsim::hccl
