#pragma once

#include <string>
#include <vector>

#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "models/graph.hpp"
#include "study/parallel_spec.hpp"

/// From what the user asks for, model parallelism or strategies of operators, to what a device computes.
namespace hcclsim::study {

/// `network` has the samples of a micro-batch, of all replicas if its operators are cut. What the user should know is
/// added to `notes`. Throws Error(bad_input).
[[nodiscard]] hccl::ShardedGraph shard_network(const models::Graph& network, const ParallelSpec& spec, Rank devices,
                                               std::vector<std::string>& notes);

}  // namespace hcclsim::study
