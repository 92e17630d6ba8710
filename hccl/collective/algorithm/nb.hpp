#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// NB, nonuniform Bruck: in every step the window of slices that a position has doubles. Positions are 0 … p−1; let K
/// be ceil(log2 p).
///
/// All-gather, step k = 0 … K−1: position x has the slices x−2^k+1 … x and writes them to x+2^k; in the last step only
/// the p−2^(K−1) slices that are missing there. Reduce-scatter, step k: x writes its part of the slices x+2^k,
/// x+2^k+2^(k+1), …, floor((p−1+2^k)/2^(k+1)) of them, to x+2^k, where they are added; in the end x holds slice x.
///
/// Scatter from a root, v = x−root: in step k = K−1 … 0 the positions v that are multiples of 2^(k+1) hold the slices
/// v … v+2^(k+1)−1 and write the upper half to v+2^k. Broadcast is a scatter of slices and an all-gather.
///
///     collective      steps   bytes of the busiest rank   time (HCCL documentation, coll_algo_intro/NB)
///     reduce-scatter  K       (p−1)/p · n                 K·alpha + (p−1)/p·n·beta + (p−1)/p·n·gamma
///     allgather       K       (p−1)/p · n                 K·alpha + (p−1)/p·n·beta
///     allreduce       2K      2(p−1)/p · n                2K·alpha + 2(p−1)/p·n·beta + (p−1)/p·n·gamma
///     scatter         K       (p−1)/p · n                 K·alpha + (p−1)/p·n·beta
///     broadcast       2K      2(p−1)/p · n                2K·alpha + 2(p−1)/p·n·beta
///
/// for every p. Unlike in NHR (nhr.hpp), most bytes of an all-gather go over the longest distance, in adjacent slices.
/// HCCL has no reduce and no gather of this kind; the recurrences of reduce-scatter and all-gather are those of its
/// documentation.
namespace hcclsim::hccl {

/// What the members of a level do. Afterwards position x holds share x complete, or all shares.
[[nodiscard]] std::vector<Loop> nb_reduce_scatter_loops(Builder& builder, const Level& level);
[[nodiscard]] std::vector<Loop> nb_all_gather_loops(Builder& builder, const Level& level);
/// The same as stages.
void nb_reduce_scatter_stages(Builder& builder, const Level& level);
void nb_all_gather_stages(Builder& builder, const Level& level);
/// The same from the rank at `root`, a position of the level's group, whose order must be the identity.
void nb_scatter_stages(Builder& builder, const Level& level, Rank root);
void nb_broadcast_stages(Builder& builder, const Level& level, Rank root);

}  // namespace hcclsim::hccl
