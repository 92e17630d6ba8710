#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// Star: the root, position 0, works with all others at the same time, with one queue for each; the others do not work
/// with each other. Queue q of the root works with position q + 1. All data moves by reads: the others read from the
/// root, or the root reads from them.
///
///                  steps   bytes the root moves   time
///     * broadcast   1       (p−1) · n              alpha + n·beta  (HCCL documentation, coll_algo_intro)
///     * scatter     1       (p−1)/p · n            alpha + n/p·beta
///     * gather      1       (p−1)/p · n            alpha + n/p·beta
///     * reduce      1       (p−1) · n              alpha + n·beta + (p−1)·n·gamma
///
/// HCCL publishes one formula, in which n is what one link carries; here n is the payload, of all blocks. The formulas
/// assume a link for every position: if all share one link of the root, the time is up to p−1 times as long. The root
/// of a reduce reads all payloads into scratch memory, then reduces them in the order of the positions.
///
/// alpha: post "you may read", wait, read, post "I have read", wait.
namespace hcclsim::hccl {

/// Stages among the members of level.group, whose position 0 is the root, on the part of the payload that level.parent
/// picks.
void star_broadcast(Builder& builder, const Level& level);
void star_reduce(Builder& builder, const Level& level);
/// Position x gets or gives its share of the payload (Builder::share): its block, or slice x of a single block.
void star_scatter(Builder& builder, const Level& level);
void star_gather(Builder& builder, const Level& level);

}  // namespace hcclsim::hccl
