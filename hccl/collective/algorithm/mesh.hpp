#pragma once

#include <vector>

#include "hccl/collective/algorithm/alltoall.hpp"

/// Mesh: every rank works with all others at the same time, with one queue for each. It pays off if every pair has a
/// direct link. Queue q of position x works with position x+1+q, whose queue p−2−q works with x.
///
/// Allreduce in one shot: every rank reads all payloads into scratch memory, then reduces them in the order of the
/// ranks, so that all results have the same bits. In two shots: position x reads slice x of every rank and reduces
/// (reduce-scatter), then reads the other complete slices (all-gather). Broadcast: the root scatters slices, then the
/// other ranks do an all-gather. Reduce: a reduce-scatter, then the root gathers. Scatter and gather are those of the
/// star, because only the root communicates. Alltoall: every rank reads its block from every other rank.
///
///                           steps  bytes in per rank   time
///     allreduce, one-shot   1      (p−1) · n           alpha + n·beta + (p−1)·n·gamma
///     allreduce, two-shot   2      2(p−1)/p · n        2·alpha + 2·n/p·beta + (p−1)/p·n·gamma
///     reduce-scatter        1      (p−1)/p · n         alpha + n/p·beta + (p−1)/p·n·gamma
///     all-gather            1      (p−1)/p · n         alpha + n/p·beta
///     broadcast             2      (p−1)/p · n         2·alpha + 2·n/p·beta
///     reduce                2      2(p−1)/p · n        2·alpha + 2·n/p·beta + (p−1)/p·n·gamma
///     scatter, gather       1      (p−1)/p · n         alpha + n/p·beta
///     alltoall              1      (p−1)/p · n         alpha + n/p·beta
///
/// n is the payload, of all blocks. The first four formulas are HCCL's (HCCL documentation, coll_algo_intro), the
/// others the sums of their steps. alpha: post "you may read", wait, read, post "I have read", wait.
namespace hcclsim::hccl {

/// Stages of one level, on the part of the payload that its parent picks. Afterwards position x holds its share of the
/// reduction, or every position all shares (Builder::share).
void mesh_reduce_scatter(Builder& builder, const Level& level);
void mesh_all_gather(Builder& builder, const Level& level);
/// A strand on p−1 queues in which queue q of a position x reads `source` of position x+1+q into `destination`.
[[nodiscard]] Strand read_from_all(Builder& builder, std::uint16_t group, const Range& source,
                                   const Range& destination);
/// Position 0 of level.group is the root.
void mesh_broadcast(Builder& builder, const Level& level);
void mesh_reduce(Builder& builder, const Level& level);

/// The strands of an alltoall among the members of a level, to be run at the same time. Blocks may differ.
[[nodiscard]] std::vector<Strand> mesh_blocks(Builder& builder, const Level& level, const Alltoall& blocks);

[[nodiscard]] Schedule mesh_one_shot_allreduce(const Operation& operation, bool inline_reduce);

}  // namespace hcclsim::hccl
