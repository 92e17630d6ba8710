#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// NHR, the nonuniform hierarchical ring: every slice has its own binomial tree, and all trees are processed at the
/// same time, over distances that double. Positions 0 … p−1; K = ceil(log2 p).
///
/// Reduce-scatter, step k = 0 … K−1: position x writes to x−2^k its part of all slices s for which bit k is the lowest
/// set bit of x−s (modulo p): the slices x−2^k, x−2^k−2^(k+1), …, floor((p−1+2^k)/2^(k+1)) of them. There they are
/// added. Afterwards only positions x at distances x−s that are multiples of 2^(k+1) have something to pass on, and in
/// the end x holds slice x. The all-gather goes back the same way, k = K−1 … 0.
///
/// Scatter from a root, v = root−x: in step k positions v < 2^k hold the slices v, v+2^k, …, and write every second of
/// them to v+2^k. Broadcast is a scatter of slices and an all-gather.
///
///     collective      steps   bytes of the busiest rank   time (HCCL documentation, coll_algo_intro/NHR)
///     reduce-scatter  K       (p−1)/p · n                 K·alpha + (p−1)/p·n·beta + (p−1)/p·n·gamma
///     allgather       K       (p−1)/p · n                 K·alpha + (p−1)/p·n·beta
///     allreduce       2K      2(p−1)/p · n                2K·alpha + 2(p−1)/p·n·beta + (p−1)/p·n·gamma
///     scatter         K       (p−1)/p · n                 K·alpha + (p−1)/p·n·beta
///     broadcast       2K      2(p−1)/p · n                2K·alpha + 2(p−1)/p·n·beta
///
/// for every p: most bytes go over the shortest distance, and numbers that are not powers of two cost no extra bytes.
/// HCCL has no reduce and no gather of this kind. It numbers the slices of an allreduce so that those of a step are
/// adjacent; here they keep their numbers, and the pieces go in one transfer, which takes the same time.
namespace hcclsim::hccl {

/// Stages among the members of a level. Afterwards position x holds share x complete, or all shares.
void nhr_reduce_scatter_stages(Builder& builder, const Level& level);
void nhr_all_gather_stages(Builder& builder, const Level& level);
/// The same from the rank at `root`, a position of the level's group, whose order must be the identity.
void nhr_scatter_stages(Builder& builder, const Level& level, Rank root);
void nhr_broadcast_stages(Builder& builder, const Level& level, Rank root);

}  // namespace hcclsim::hccl
