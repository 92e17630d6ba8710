#pragma once

#include <optional>

#include "base/units.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"

/// The pass from the graph of a whole batch to that of one device. Every operator computes its parts by its strategy.
/// Where its result is a sum over devices an all_reduce follows, or a reduce_scatter; the bias is added behind it.
/// Where the next operator cuts the tensor in another way, redistribution (hccl/parallel/layout/redistribution.hpp)
/// comes before it, once for all that want the same. The backward pass is the dual of all that
/// (models/lowering/lower.hpp): gradients on copies of a tensor are addends of its gradient, so that copies need no
/// communication of their own, and gradients of parameters are summed over their copies.
namespace hcclsim::hccl {

struct ShardOptions {
  bool enable_alltoall = false;    ///< cuts that change their axes: all_to_all in place of all_gather and slice
  bool loss_repeated_mean = true;  ///< the loss of devices with the same rows is divided by their number
  /// Parts of the axes of the batch as devices read it, copies with the devices on the left; none: as it is needed.
  std::optional<Cuts> dataset{};
};

/// `whole` has the samples of all data-parallel parts together. Operators without a strategy are batch parallel. Throws
/// Error(bad_input, "strategy") for a strategy of an operator that is not there or that it cannot have
/// (operator_sharding.hpp), for a parameter that two operators cut differently, and for images that cannot be cut along
/// height or width (halo.hpp).
[[nodiscard]] ShardedGraph shard_graph(const models::Graph& whole, const StrategyMap& strategies, Rank devices,
                                       const ShardOptions& options = {});

}  // namespace hcclsim::hccl
