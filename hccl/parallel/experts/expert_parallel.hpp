#pragma once

#include "hccl/parallel/experts/expert_load.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"

/// Experts over devices (Lepikhin et al., "GShard"; Rajbhandari et al., "DeepSpeed-MoE"). E of the devices that have
/// the same parts of the experts' weights, and other samples, share the experts: each keeps 1/E of them, and all its
/// rows go to where their experts are and back, by an all_to_all behind the dispatch and one before the combine. What
/// an expert works on is cut along the experts in place of the rows:
///
///   dispatch            all_to_all                  products                     all_to_all              combine
///   experts × C × h  →  experts/E × E·C × h  →  …  →  experts/E × E·C × h  →  experts × C × h
///
/// The gradients of experts are summed over the devices that have the same ones, a 1/E of those that share all else.
/// With a capacity all parts are equal, whatever rows come. Without one (dropless) the all_to_alls carry what the load
/// says. The graph is that of a device with the most rows; those of each place are in expert_places.hpp.
namespace hcclsim::hccl {

struct ExpertParallel {
  Rank ranks = 1;     ///< that share the experts; 1: all devices have all of them
  ExpertSkew load{};  ///< of dropless experts
};

/// Cuts the experts of a network, whose samples have been cut, over groups of neighbours among the devices that have
/// the same of them. Throws Error(bad_input, "option") if the network has no experts, if their number or that of the
/// devices cannot be divided by the ranks, or if a load is skewed that a capacity bounds.
[[nodiscard]] ShardedGraph share_experts(ShardedGraph network, const ExpertParallel& options);

}  // namespace hcclsim::hccl
