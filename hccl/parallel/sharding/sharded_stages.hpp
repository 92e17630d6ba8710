#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hccl/parallel/sharding/sharded_graph.hpp"

/// A network whose operators are cut over devices, in stages of a pipeline as well.
///
/// Operators are cut first, then the network: where a stage ends, the tensors on their way have the layout of the
/// operator that makes them, each device sends its part to the device with the same place in the next stage, and what
/// brings it into the layout of its reader belongs to the reader's layer, and so to the reader's stage. The other way
/// round, a stage would not know how what it receives is laid out. The families of the devices are those of the whole
/// network in every stage.
namespace hcclsim::hccl {

/// The network as every device of a stage computes it on samples of its own, with whole parameters: no families.
[[nodiscard]] ShardedGraph replicated(models::Graph network, Rank devices);

/// What replicated() has made, but for batch norms, which take the mean and variance of the samples of all devices:
/// each sums them up over family 0. Without batch norms, or with one device, it stays as it is.
[[nodiscard]] ShardedGraph with_common_statistics(ShardedGraph network);

/// The stages, each for as many devices; of one stage the network itself. `layers_of_parts` as stage_graphs() takes it.
/// Throws Error(bad_input, "pipeline").
[[nodiscard]] std::vector<ShardedGraph> sharded_stages(const ShardedGraph& network,
                                                       std::span<const std::uint32_t> layers_of_parts,
                                                       std::uint32_t stages);

}  // namespace hcclsim::hccl
