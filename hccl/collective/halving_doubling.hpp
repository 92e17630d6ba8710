#pragma once

#include "hccl/collective/builder.hpp"

/// Recursive halving-doubling. With p = 2^k positions, round r of the halving exchanges with position x xor 2^r: each
/// sends the half of its window that the other keeps, where it is added; after k rounds every position has one complete
/// slice. The doubling goes back through the same peers and widens the windows again.
///
///     rounds          2·log2 p
///     bytes per rank  2(p−1)/p · n out, as many in
///     time            2·log2 p·alpha + 2(p−1)/p·n·beta + (p−1)/p·n·gamma
///
/// Other numbers of ranks: with p' the largest power of two below p, the first 2(p−p') ranks fold in pairs (even writes
/// its payload to odd), the odd ones and the rest run the above, and the even ones read the result from the odd ones:
///
///     time            (2·floor(log2 p)+2)·alpha + (2(p'−1)/p'+2)·n·beta + ((p'−1)/p'+1)·n·gamma
///
/// (HCCL documentation, coll_algo_intro.) A window in round r is a bit-reversed prefix: see Cut::Kind::halving.
namespace hcclsim::hccl {

/// The stages of an allreduce among the places 0 … span−1 of the level's group (whose order must be the identity) on
/// the bytes that its parent leaves.
void halving_doubling_stages(Builder& builder, const Level& level);

[[nodiscard]] Schedule halving_doubling_allreduce(const Operation& operation, bool inline_reduce);

}  // namespace hcclsim::hccl
