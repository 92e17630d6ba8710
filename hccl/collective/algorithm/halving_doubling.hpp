#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// Recursive halving-doubling. With p = 2^k positions, round r of the halving exchanges with position x xor 2^r: each
/// sends the half of its window that the other keeps, where it is added; after k rounds every position has one complete
/// slice. The doubling goes back through the same peers and widens the windows again. Allreduce does both. A reduce
/// ends with a gather instead, in which the member of each pair that is nearer to the root takes the window of the
/// other.
///
/// Reduce-scatter must leave block x at position x, and all-gather starts from there. The reduce-scatter takes the
/// farthest peer first, x xor 2^(k−1−r), so that a window is a row of adjacent blocks; the all-gather is its reverse.
///
/// Broadcast is a binomial tree of whole payloads, to x xor 2^(k−1), …, x xor 1.
///
///     collective      rounds   bytes of the busiest rank   time
///     reduce-scatter  log2 p   (p−1)/p · n                 log2 p·alpha + (p−1)/p·n·beta + (p−1)/p·n·gamma
///     allgather       log2 p   (p−1)/p · n                 log2 p·alpha + (p−1)/p·n·beta
///     allreduce       2·log2 p 2(p−1)/p · n                2·log2 p·alpha + 2(p−1)/p·n·beta + (p−1)/p·n·gamma
///     reduce          2·log2 p 2(p−1)/p · n                2·log2 p·alpha + 2(p−1)/p·n·beta + (p−1)/p·n·gamma
///     broadcast       log2 p   log2 p · n                  log2 p·(alpha + n·beta)
///
/// Other numbers of ranks: let p' be the largest power of two below p. The first 2(p−p') ranks form pairs, and one of
/// each pair writes its payload to the other. The receiving ranks and all ranks without a partner run the algorithm
/// above; the giving ranks get the result from their partners. The root never gives its payload away. In a
/// reduce-scatter or all-gather, a receiving rank has the blocks of both, so the rows of the windows differ in length;
/// a giving rank gets, or gives, only its own block. Let w be the number of blocks of the first row in all rounds, the
/// sum over b = 0 … floor(log2 p)−1 of 2^b + min(p−p', 2^b):
///
///     allreduce  (2·floor(log2 p)+2)·alpha + (2(p'−1)/p'+2)·n·beta + ((p'−1)/p'+1)·n·gamma
///     reduce     (2·floor(log2 p)+1)·alpha + (2(p'−1)/p'+1)·n·beta + ((p'−1)/p'+1)·n·gamma
///     broadcast  ceil(log2 p)·(alpha + n·beta)
///     reduce-scatter, allgather
///                (floor(log2 p)+2)·alpha + (1 + (w+1)/p)·n·beta, and (1 + w/p)·n·gamma
///
/// (HCCL documentation, coll_algo_intro/RHD. For the last two, which HCCL has without publishing a formula, these are
/// the sums of the steps.) A window in round r is a bit-reversed prefix, see Cut::Kind::halving. HCCL has no scatter
/// and no gather of this kind.
namespace hcclsim::hccl {

/// The stages of an allreduce among the places 0 … span−1 of the level's group (whose order must be the identity), on
/// the bytes that its parent picks.
void halving_doubling_stages(Builder& builder, const Level& level);
/// The same of a reduce to, and a broadcast from, position `root` of the group.
void halving_doubling_reduce_stages(Builder& builder, const Level& level, Rank root);
void halving_doubling_broadcast_stages(Builder& builder, const Level& level, Rank root);
/// The same of collectives with a block for every rank; afterwards position x holds block x complete, or all of them.
void halving_doubling_reduce_scatter_stages(Builder& builder, const Level& level);
void halving_doubling_all_gather_stages(Builder& builder, const Level& level);

}  // namespace hcclsim::hccl
