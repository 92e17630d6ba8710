#pragma once

#include <vector>

#include "hccl/collective/algorithm/alltoall.hpp"

/// Pairwise alltoall: p−1 steps; in step k rank x reads its block of x−k while x+k reads its block of x, so that every
/// link carries one block at a time. Blocks go from `input` to `output`; at the same time the rank's own block is
/// copied on another queue. Blocks may differ in size (alltoall-v, alltoall-vc).
///
///     steps           p−1
///     bytes per rank  (p−1)/p · n out, as many in
///     time            (p−1)·alpha + sum over k of (largest block of step k)·beta   (HCCL documentation,
///                     coll_algo_intro); with blocks of n/p: (p−1)·(alpha + n/p·beta)
///
/// Ranks with small blocks run ahead, so blocks that differ may take less time. alpha: post "you may read" to x+k,
/// wait, read, post "I have read" to x−k, wait. "You may read" has a notify slot for every step, as ranks may be
/// several steps apart: p slots in all.
namespace hcclsim::hccl {

/// The strands of an alltoall among the members of a level, to be run at the same time.
[[nodiscard]] std::vector<Strand> pairwise_blocks(Builder& builder, const Level& level, const Alltoall& blocks);

}  // namespace hcclsim::hccl
