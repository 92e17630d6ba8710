#pragma once

#include <memory>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "models/program.hpp"

/// What devices that share dropless experts compute: each the rows that come to its own experts. A device's place among
/// those that share the experts says which these are (expert_parallel.hpp); devices with one place, in several groups,
/// do the same. The graph of a stage is that of a device with the most rows, which counts for the memory of all; here
/// is what becomes of it at a place.
namespace hcclsim::hccl {

/// Whether the devices of a stage get different numbers of rows.
[[nodiscard]] bool experts_differ(const models::Graph& stage);

/// The graph of a stage as a device with this place computes it.
[[nodiscard]] models::Graph graph_of_place(models::Graph stage, Rank place);

/// Of each device of such a stage, its place.
[[nodiscard]] std::vector<Rank> expert_places(const ShardedGraph& stage);

/// `program` with the work and the times that the kernels of a micro-batch have in `at_place`, the program of the graph
/// of a place.
[[nodiscard]] std::shared_ptr<const models::Program> program_of_place(const models::Program& program,
                                                                      const models::Program& at_place);

}  // namespace hcclsim::hccl
