#pragma once

#include "hccl/collective/builder.hpp"

/// Mesh: every rank works with all others at the same time, one queue for each. Needs a direct link between every pair
/// to be worth it. Queue q of position x works with position x+1+q, whose queue p−2−q works with x.
///
/// One-shot: everybody reads everybody's payload into scratch memory, then reduces it in the order of the ranks, so
/// that all results have the same bits.
///
///     time  alpha + n·beta + (p−1)·n·gamma
///
/// Two-shot: position x reads slice x of everybody and reduces (reduce-scatter), then reads the other complete slices
/// (all-gather).
///
///     time  2·alpha + 2·n/p·beta + (p−1)/p·n·gamma   (HCCL documentation, coll_algo_intro)
///
/// alpha: post "you may read", wait, read, post "I have read", wait.
namespace hcclsim::hccl {

/// Stages of the reduce-scatter and the all-gather of one level; afterwards position x holds slice x, or all of them.
void mesh_reduce_scatter(Builder& builder, const Level& level);
void mesh_all_gather(Builder& builder, const Level& level);

[[nodiscard]] Schedule mesh_one_shot_allreduce(const Operation& operation, bool inline_reduce);
[[nodiscard]] Schedule mesh_two_shot_allreduce(const Operation& operation, bool inline_reduce);

}  // namespace hcclsim::hccl
