#pragma once

#include "hccl/parallel/sharding/sharded_graph.hpp"

/// What layers that are computed again start from, kept in parts: MindSpore's recompute_slice_activation. Where devices
/// have the same of a tensor, each keeps a slice of its rows, and the backward pass gathers them before it repeats the
/// layer. In the graph the layer reads the allgather of the slice; the forward pass reads the tensor itself, as the two
/// undo each other (models::restores_slice).
namespace hcclsim::hccl {

/// Of the layers of a stage that have operators which are computed again. Tensors whose rows the devices cannot share
/// evenly are kept whole.
void slice_kept_activations(ShardedGraph& stage);

}  // namespace hcclsim::hccl
