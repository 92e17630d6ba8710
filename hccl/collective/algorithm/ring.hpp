#pragma once

#include <vector>

#include "hccl/collective/algorithm/builder.hpp"

/// Ring: positions 0 … p−1 pass slices to the right; two phases of p−1 rounds.
///
/// Reduce-scatter, round r: position x writes slice x−1−r to x+1, where it is added. After p−1 rounds x holds the
/// complete slice x. All-gather, round r: x writes slice x−r to x+1.
///
/// An allreduce is both, one after the other. Blocks of different sizes (reduce-scatter-v, all-gather-v) go the same
/// way.
///
///                     rounds    bytes out per rank   time (HCCL documentation, coll_algo_intro)
///     allreduce       2(p−1)    2(p−1)/p · n         2(p−1)·alpha + 2(p−1)/p·n·beta + (p−1)/p·n·gamma
///     reduce-scatter  p−1       (p−1)/p · n          (p−1)·alpha + (p−1)/p·n·beta + (p−1)/p·n·gamma
///     all-gather      p−1       (p−1)/p · n          (p−1)·(alpha + n/p·beta)
///
/// n is the payload, of all blocks. alpha of a round: post "my memory is free" to the left, wait for the right's,
/// write, post "written", wait for the left's. Several rings, each with its own order of the same ranks, can run at the
/// same time on separate queues. Slice or block s is then cut once more into one part per ring, which divides the terms
/// of beta and gamma by the number of rings. This is the four-ring form of the 8-NPU 910A server and the double ring of
/// A3.
namespace hcclsim::hccl {

/// The part of the share `index` (Builder::share) that ring number `ring` of `rings` carries.
[[nodiscard]] std::vector<Cut> ring_share(const Builder& builder, const Level& level, Linear index, std::uint32_t ring,
                                          std::uint32_t rings);

/// Loops of one ring (number `ring` of `rings`) for the bytes that level.parent picks; level.group is that ring.
[[nodiscard]] Loop ring_reduce_scatter(Builder& builder, const Level& level, std::uint32_t ring, std::uint32_t rings);
[[nodiscard]] Loop ring_all_gather(Builder& builder, const Level& level, std::uint32_t ring, std::uint32_t rings);
using RingLoop = Loop (*)(Builder&, const Level&, std::uint32_t ring, std::uint32_t rings);

/// A schedule in which all ranks run the loops, one after the other, on rings in the given orders at the same time;
/// without orders, on one ring in the order of the ranks.
[[nodiscard]] Schedule in_rings(const Operation& operation, const std::vector<std::vector<Rank>>& orders,
                                bool inline_reduce, const std::vector<RingLoop>& loops);
[[nodiscard]] Schedule ring_allreduce(const Operation& operation, bool inline_reduce);

/// Orders of the four rings of an 8-NPU 910A server, as device numbers: together they use every link of the two full
/// meshes of four and of the pairs i, i+4 once in each direction (HCCL's ring table).
[[nodiscard]] const std::vector<std::vector<Rank>>& four_rings_of_910a();
/// Both directions around the dies of an A3 node (HCCL's double ring).
[[nodiscard]] std::vector<std::vector<Rank>> double_ring(Rank ranks);

}  // namespace hcclsim::hccl
