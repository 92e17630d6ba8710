#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "models/graph.hpp"
#include "models/lowering/optimizer.hpp"
#include "models/program.hpp"
#include "study/files/strategy/strategy_file.hpp"

/// What stands in a file of strategies of a stage. Strategies of operators that all are batch parallel: an input with
/// samples is cut on its first axis into as many parts as the devices of a stage and that axis have in common, a
/// parameter is not cut.
namespace hcclsim::study {

struct BatchParallel {
  const models::Graph& graph;  ///< of a stage, with the samples of one device
  std::uint32_t stage = 0;
  Rank devices = 1;                                 ///< of the stage
  const models::Program* program = nullptr;         ///< how parameters are shared
  Rank shard_ranks = 1;                             ///< ranks that share them
  const hccl::ShardedGraph* sharded = nullptr;      ///< how parameters are cut; null: they are not
  std::optional<models::Optimizer> optimizer = {};  ///< none: the network is applied, not trained
  bool accumulates = false;                         ///< gradients of micro-batches are added up
  bool only_trainable = true;                       ///< else moving statistics of batch norm have layouts too
};

/// The key of an operator with parameters in files of strategies, "MatMul_fc.weight", and that of the bias of a
/// product, "BiasAdd_fc.bias".
[[nodiscard]] std::string node_name(const models::Graph& graph, const models::Operator& op);
[[nodiscard]] std::string bias_name(const models::Graph& graph, const models::Operator& op);
/// Whether MindSpore's primitive takes its parameters before what comes from other operators; `key`: of the operator.
[[nodiscard]] bool takes_parameters_first(std::string_view key);

/// Of the operators that have a parameter, under the name of the first one; and the layouts of all parameters, each
/// with its copies: states of the optimizer and the sum of its gradients.
[[nodiscard]] StrategyMap batch_parallel_strategies(const BatchParallel& of);

/// The layouts alone, also of parameters that are cut. Throws Error(bad_input, "unsupported") for one whose axis is cut
/// along several axes of the devices.
[[nodiscard]] std::vector<ParameterLayout> layouts_of(const BatchParallel& of);

/// Throws Error(bad_input, "unsupported") for a strategy of one of the operators that is not batch parallel, or
/// "strategy" for one whose inputs are not those of the operator; operators that the network does not have are
/// counted in `notes`.
void require_batch_parallel(const StrategyMap& loaded, const BatchParallel& of, const std::string& path,
                            std::vector<std::string>& notes);

/// The groups of a Plan that a rank is in, and the ranks of its stage that keep the same parts of all parameters.
/// `graph` and `program`: what devices of the stage compute.
[[nodiscard]] GroupMap groups_of(const hccl::Plan& plan, Rank rank, const hccl::ShardedGraph& graph,
                                 const models::Program& program);

}  // namespace hcclsim::study
