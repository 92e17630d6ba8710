#pragma once

#include <cstdint>
#include <vector>

#include "hccl/collective/algorithm/builder.hpp"

/// Collectives with a root along a ring that is cut open at the root: position 0 is the root, and position x works with
/// x−1 and x+1 only.
///
/// Broadcast: x reads the payload from x−1, then x+1 reads it from x. Reduce: x reads from x+1 what the positions above
/// have reduced, adds it to its own payload, then x−1 reads that; the root ends with v[0] + (v[1] + (… + v[p−1])).
/// Scatter, round r: the root writes block p−1−r to 1; every other position passes on what arrived in the round before,
/// so that all get their own block in the last round. Gather is the reverse: x writes blocks x, x+1, …, p−1 to x−1. A
/// position that passes on a block holds it at that block's place.
///
///                steps   bytes out per rank at most   time
///     broadcast  p−1     n                            (p−1)·(alpha + n·beta)   (HCCL documentation, coll_algo_intro)
///     reduce     p−1     n                            (p−1)·(alpha + n·beta + n·gamma)
///     scatter    p−1     (p−1)/p · n                  (p−1)·(alpha + n/p·beta)
///     gather     p−1     (p−1)/p · n                  (p−1)·(alpha + n/p·beta)
///
/// Several rings share every block or slice, as in ring.hpp. With k of them a broadcast is a scatter of slices and then
/// an all-gather, a reduce a reduce-scatter and then a gather:
///
///     broadcast  2(p−1)  2·(p−1)/p · n                2(p−1)·alpha + 2(p−1)/p·n/k·beta
///     reduce     2(p−1)  2·(p−1)/p · n                2(p−1)·alpha + 2(p−1)/p·n/k·beta + (p−1)/p·n/k·gamma
///     scatter    p−1     (p−1)/p · n                  (p−1)·(alpha + n/p/k·beta)
///     gather     p−1     (p−1)/p · n                  (p−1)·(alpha + n/p/k·beta)
///
/// n is the payload, of all blocks. HCCL publishes the first formula; the others are sums of the steps. alpha of a step
/// of broadcast and reduce: wait for "there is something to read", read, post "I have read" back, post "there is
/// something to read" ahead; of the others as in ring.hpp.
namespace hcclsim::hccl {

/// Stages among the members of level.group, whose position 0 is the root, on the part of the payload that level.parent
/// picks.
void ring_broadcast(Builder& builder, const Level& level);
void ring_reduce(Builder& builder, const Level& level);
void ring_scatter(Builder& builder, const Level& level);
void ring_gather(Builder& builder, const Level& level);

/// Strands of ring number `ring` of `rings`; level.group is that ring, beginning at the root. None for a single rank.
[[nodiscard]] std::vector<Strand> ring_scatter(Builder& builder, const Level& level, std::uint32_t ring,
                                               std::uint32_t rings);
[[nodiscard]] std::vector<Strand> ring_gather(Builder& builder, const Level& level, std::uint32_t ring,
                                              std::uint32_t rings);

/// A broadcast, reduce, scatter or gather on rings in the given orders at the same time; operation.ranks = size of
/// each.
using RingOrders = std::vector<std::vector<Rank>>;
[[nodiscard]] Schedule multi_ring_rooted(const Operation& operation, const RingOrders& orders, bool inline_reduce);

}  // namespace hcclsim::hccl
