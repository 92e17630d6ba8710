#include "study/sharding.hpp"

#include <cstdint>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/experts/expert_parallel.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "study/strategy/operator_strategies.hpp"

namespace hcclsim::study {
namespace {

hccl::ShardedGraph share_experts(hccl::ShardedGraph network, const OperatorParallel& operators) {
  if (operators.experts <= 1) return network;
  const Rank data = network.devices / operators.sharing();
  if (data % operators.experts != 0) {
    bad_input("option",
              "--expert-parallel {} must divide the {} ranks, or groups of them, that have samples of their own",
              operators.experts, data);
  }
  return hccl::share_experts(
      std::move(network),
      {.ranks = operators.experts, .load = {.skew = operators.expert_skew, .seed = operators.expert_seed}});
}

}  // namespace

hccl::StrategyMap strategies_of(models::Graph& network, const OperatorParallel& operators, Rank devices,
                                std::vector<std::string>& notes) {
  hccl::StrategyMap strategies;
  if (operators.sharing() > 1) {
    strategies =
        hccl::transformer_strategies(network, {.data = static_cast<std::uint32_t>(devices / operators.sharing()),
                                               .context = operators.context,
                                               .model = operators.model,
                                               .sequence_parallel = operators.sequence,
                                               .vocabulary_parallel = operators.vocabulary,
                                               .context_kind = operators.context_kind});
  }
  if (!operators.strategy.empty()) {
    OperatorStrategies own = read_operator_strategies(operators.strategy, network, notes);
    const std::set<std::string> again(own.recomputed.begin(), own.recomputed.end());
    for (models::Operator& op : network.operators) op.recompute = op.recompute || again.contains(op.name);
    for (auto& [name, strategy] : own.strategies) strategies.insert_or_assign(name, std::move(strategy));
  }
  for (const auto& [name, strategy] : operators.found) strategies.insert_or_assign(name, strategy);
  return strategies;
}

hccl::ShardedGraph shard_network(models::Graph network, const ParallelSpec& spec, Rank devices,
                                 std::vector<std::string>& notes) {
  const OperatorParallel& operators = spec.operators;
  if (!operators.cuts()) return hccl::replicated(std::move(network), devices);
  const hccl::StrategyMap strategies = strategies_of(network, operators, devices, notes);
  // Positions are exchanged for heads as the kind of context parallelism says, whatever else is done.
  const bool exchanges = operators.context > 1 && operators.context_kind == hccl::ContextKind::ulysses;
  hccl::ShardedGraph sharded =
      hccl::shard_graph(network, strategies, devices, {.enable_alltoall = operators.all_to_all || exchanges});
  bool cut = false;
  for (std::uint32_t parameter = 0; parameter < sharded.parameters.size(); ++parameter) {
    cut = cut || sharded.is_cut(parameter);
  }
  if (operators.model > 1 && operators.strategy.empty() && !cut) {
    bad_input("option",
              "--model-parallel {}: {} has no layers of a transformer that ranks could share; --strategy FILE cuts "
              "single operators",
              operators.model, network.title);
  }
  return share_experts(std::move(sharded), operators);
}

}  // namespace hcclsim::study
