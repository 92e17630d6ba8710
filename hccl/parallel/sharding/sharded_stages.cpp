#include "hccl/parallel/sharding/sharded_stages.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "hccl/parallel/pipeline/stage_graphs.hpp"

namespace hcclsim::hccl {

ShardedGraph replicated(models::Graph network, Rank devices) {
  return {.graph = std::move(network), .devices = devices};
}

ShardedGraph with_common_statistics(ShardedGraph network) {
  if (network.devices == 1) return network;
  bool any = false;
  for (models::Operator& op : network.graph.operators) {
    if (op.kind != models::OperatorKind::batch_norm) continue;
    op.group = {.family = 0, .ranks = network.devices};
    any = true;
  }
  if (!any) return network;
  std::vector<Rank> all(network.devices);
  std::iota(all.begin(), all.end(), Rank{0});
  network.families.push_back({std::move(all)});
  return network;
}

namespace {

/// What a stage has of something whose number in the cut network is `number`: its number before operators were cut, if
/// that is known.
std::uint32_t original_of(std::uint32_t number, std::uint32_t before) {
  return before == models::no_original ? number : before;
}

/// The layout of what a stage receives, which has the name of its maker ("h.3.add_2.from_stage_0"); none where the
/// maker has several outputs.
std::optional<TensorLayout> layout_of_received(const ShardedGraph& network, std::string_view name,
                                               const std::vector<std::uint32_t>& first_value) {
  const std::string_view maker = name.substr(0, name.rfind(".from_stage_"));
  const auto found = std::ranges::find(network.graph.operators, maker, &models::Operator::name);
  if (found == network.graph.operators.end() || found->outputs.size() != 1) return std::nullopt;
  return network.values[first_value[static_cast<std::size_t>(found - network.graph.operators.begin())]];
}

/// The stage of a network with what is known of its parameters. `graph` names operators and parameters of the network.
ShardedGraph stage_of(const ShardedGraph& network, models::Graph graph) {
  ShardedGraph stage = replicated(std::move(graph), network.devices);
  stage.families = network.families;
  for (models::Parameter& parameter : stage.graph.parameters) {
    const std::uint32_t number = parameter.original;
    if (!network.parameters.empty()) stage.parameters.push_back(network.parameters[number]);
    if (!network.mirrors.empty()) stage.mirrors.push_back(network.mirrors[number]);
    parameter.original = original_of(number, network.graph.parameters[number].original);
  }
  const std::vector<std::uint32_t> first_value = network.graph.first_values();
  for (models::Operator& op : stage.graph.operators) {
    const bool own = op.original != models::no_original;
    for (std::uint32_t output = 0; output < op.outputs.size() && !network.values.empty(); ++output) {
      stage.values.push_back(own ? network.values[first_value[op.original] + output]
                                 : layout_of_received(network, op.name, first_value));
    }
    if (own) op.original = original_of(op.original, network.graph.operators[op.original].original);
  }
  return stage;
}

}  // namespace

std::vector<ShardedGraph> sharded_stages(const ShardedGraph& network, std::span<const std::uint32_t> layers_of_parts,
                                         std::uint32_t stages) {
  if (stages == 1) return {network};
  std::vector<ShardedGraph> all;
  for (models::Graph& graph : stage_graphs(network.graph, layers_of_parts, stages, network.devices)) {
    all.push_back(stage_of(network, std::move(graph)));
  }
  return all;
}

}  // namespace hcclsim::hccl
