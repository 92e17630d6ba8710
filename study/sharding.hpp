#pragma once

#include <string>
#include <vector>

#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"
#include "study/parallel_spec.hpp"

/// From what the user asks for, model parallelism or strategies of operators, to what a device computes.
namespace hcclsim::study {

/// Of every operator of a network with a strategy: those of a file count before those that model parallelism gives.
/// Operators that the file wants to be computed again are marked. Throws Error(bad_input).
[[nodiscard]] hccl::StrategyMap strategies_of(models::Graph& network, const OperatorParallel& operators, Rank devices,
                                              std::vector<std::string>& notes);

/// `network` has the samples of a micro-batch, of all replicas if its operators are cut. What the user should know is
/// added to `notes`. Throws Error(bad_input).
[[nodiscard]] hccl::ShardedGraph shard_network(models::Graph network, const ParallelSpec& spec, Rank devices,
                                               std::vector<std::string>& notes);

}  // namespace hcclsim::study
