#pragma once

#include <string>
#include <vector>

#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"
#include "study/files/strategy/operator_strategies.hpp"
#include "study/spec/parallel_spec.hpp"

/// From what the user asks for, model parallelism or strategies of operators, to what a device computes.
namespace hcclsim::study {

/// What the files of strategies say of a network that is cut over so many devices; nothing without a file. Throws
/// Error(bad_input).
[[nodiscard]] OperatorStrategies strategies_of_file(const models::Graph& network, const OperatorParallel& operators,
                                                    Rank devices, std::vector<std::string>& notes);

/// Of every operator of a network with a strategy: those of a file count before those that model parallelism or a
/// search gives, those of a loaded checkpoint after them. Operators that the file wants to be computed again are
/// marked. What the user should know of a search is added to `notes`. Throws Error(bad_input).
[[nodiscard]] hccl::StrategyMap strategies_of(models::Graph& network, const ParallelSpec& spec,
                                              const hccl::PipelineShape& shape, const OperatorStrategies& of_file,
                                              Rank devices, std::vector<std::string>& notes);

/// Puts layers into the stages that the file gives them, where layers are not given to stages otherwise. Throws
/// Error(bad_input) of kind "option" if they are, or if stages have several chunks, "strategy" as layers_of_stages().
void place_layers(const OperatorStrategies& of_file, const models::Graph& network, const hccl::PipelineShape& shape,
                  ParallelSpec& spec);

/// `network` has the samples of a micro-batch, of all replicas if its operators are cut. What the user should know is
/// added to `notes`. Throws Error(bad_input).
[[nodiscard]] hccl::ShardedGraph shard_network(models::Graph network, const ParallelSpec& spec,
                                               const hccl::PipelineShape& shape, Rank devices,
                                               std::vector<std::string>& notes);

}  // namespace hcclsim::study
