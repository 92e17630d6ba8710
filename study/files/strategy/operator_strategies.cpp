#include "study/files/strategy/operator_strategies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/names.hpp"
#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "study/files/strategy/batch_parallel.hpp"
#include "study/files/strategy/pattern_file.hpp"
#include "study/files/strategy/strategy_file.hpp"

namespace hcclsim::study {
namespace {

bool has_bias(const models::Operator& op) {
  const bool product = op.kind == models::OperatorKind::linear || op.kind == models::OperatorKind::convolution;
  return product && op.parameters.size() > 1;
}

std::string key_of(const models::Graph& network, const models::Operator& op) {
  return op.parameters.empty() ? fmt::format("{}_{}", models::name_of(op.kind), op.name) : node_name(network, op);
}

/// Cuts of a tensor of so many axes without those of axes that only our strategies see and that are not cut: blocks,
/// and positions beside sequences. With them if the rest could not be told.
hccl::Cuts seen(const hccl::Cuts& cuts, std::size_t axes, bool of_parameter) {
  hccl::Cuts fewer = cuts;
  for (std::size_t axis = of_parameter ? 0 : 1; fewer.size() > axes && axis + 1 < fewer.size();) {
    if (fewer[axis] == 1) {
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(axis));
    } else {
      ++axis;
    }
  }
  return fewer.size() == axes ? fewer : cuts;
}

/// Cuts of the inputs and parameters of an operator as the network has them.
std::vector<hccl::Cuts> seen_inputs(const models::Graph& network, const models::Operator& op, std::string_view key,
                                    std::vector<hccl::Cuts> inputs) {
  const std::size_t before = takes_parameters_first(key) ? op.parameters.size() : 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool of_parameter = i < before || i >= before + op.inputs.size();
    std::size_t number = i;  // among the parameters, or the inputs
    if (i >= before) number -= of_parameter ? op.inputs.size() : before;
    if (of_parameter && number >= op.parameters.size()) continue;  // moving statistics
    const std::size_t axes = of_parameter ? network.parameters[op.parameters[number]].shape.size()
                                          : network.tensor(op.inputs[number]).shape.rank();
    inputs[i] = seen(inputs[i], axes, of_parameter);
  }
  return inputs;
}

/// Numbers of parts of a strategy with axes of the devices.
std::vector<hccl::Cuts> parts_of(const hccl::LayoutStrategy& layout) {
  std::vector<hccl::Cuts> inputs;
  for (const hccl::TensorMap& map : layout.inputs) {
    const hccl::TensorLayout seen{layout.matrix, map, {}};
    hccl::Cuts& cuts = inputs.emplace_back();
    for (std::size_t axis = 0; axis < map.size(); ++axis) cuts.push_back(seen.cuts(axis));
  }
  return inputs;
}

/// The bias of a product is added to what the product makes: its rows, or images, and the features of the weight.
NodeStrategy bias_strategy(const models::Graph& network, const models::Operator& op, const NodeStrategy& product) {
  NodeStrategy bias{.name = bias_name(network, op), .stage = product.stage, .inputs = {product.inputs[0]}};
  const std::uint32_t features = product.inputs[1].front();
  std::vector<std::uint32_t>& made = bias.inputs.front();
  made[op.kind == models::OperatorKind::linear ? made.size() - 1 : 1] = features;
  bias.inputs.push_back({features});
  return bias;
}

hccl::OperatorStrategy strategy_of(const NodeStrategy& node) {
  hccl::OperatorStrategy strategy;
  strategy.gathers_again = node.gathers_again;
  strategy.manual_split = node.manual_split;
  strategy.on_host = node.on_host;
  strategy.group_size = node.group_size;
  if (!node.device_matrix.empty()) {
    strategy.layout = {.matrix = {node.device_matrix}, .inputs = node.maps, .output = node.output_map};
    return strategy;
  }
  strategy.inputs = node.inputs;
  if (!node.output.empty()) strategy.output = node.output;
  return strategy;
}

/// The strategies of a checkpoint for the operators that have their parameters.
OperatorStrategies strategies_of_checkpoint(const std::string& path, const models::Graph& network,
                                            std::vector<std::string>& notes) {
  const StrategyMap loaded = read_strategies(path);
  std::map<std::string_view, const NodeStrategy*> nodes;
  for (const NodeStrategy& node : loaded.nodes) nodes.emplace(node.name, &node);
  std::map<std::string_view, const ParameterLayout*> layouts;
  for (const ParameterLayout& layout : loaded.parameters) layouts.emplace(layout.name, &layout);
  std::set<std::string_view> used;
  OperatorStrategies result;
  for (const models::Operator& op : network.operators) {
    const auto found = nodes.find(key_of(network, op));
    if (found == nodes.end()) continue;
    used.insert(found->first);
    const NodeStrategy& node = *found->second;
    hccl::OperatorStrategy strategy = strategy_of(node);
    const auto table =
        op.parameters.empty() ? layouts.end() : layouts.find(network.parameters[op.parameters.front()].name);
    if (strategy.manual_split.empty() && table != layouts.end()) {  // MindSpore's own files have it there
      const std::vector<std::int64_t>& rows = table->second->split_shape;
      strategy.manual_split.assign(rows.begin(), rows.end());
    }
    if (has_bias(op)) {
      const auto bias = nodes.find(bias_name(network, op));
      if (bias != nodes.end()) used.insert(bias->first);
    }
    if (node.recompute) result.recomputed.push_back(op.name);
    result.stages[op.name] = node.stage;
    result.strategies.emplace(op.name, std::move(strategy));
    result.places.emplace(op.name, fmt::format("{}: {}", path, node.name));
  }
  if (used.size() < nodes.size()) {
    notes.push_back(fmt::format("{}: {} of {} strategies are of operators that the network does not have", path,
                                nodes.size() - used.size(), nodes.size()));
  }
  result.is_checkpoint = true;
  return result;
}

/// The stage of every layer; the layers that `read` does not name are in that of the one before.
std::vector<std::uint32_t> stages_of_layers(const OperatorStrategies& read, const models::Graph& network) {
  std::vector<std::optional<std::uint32_t>> given(network.layers);
  for (const models::Operator& op : network.operators) {
    const auto found = read.stages.find(op.name);
    if (found == read.stages.end() || op.layer == models::no_layer) continue;
    std::optional<std::uint32_t>& stage = given[op.layer];
    if (stage.has_value() && *stage != found->second) {
      bad_input("strategy", "{}: stage {}, but others of layer {} are to be in stage {}", op.name, found->second,
                op.layer, *stage);
    }
    stage = found->second;
  }
  std::vector<std::uint32_t> stages;
  std::uint32_t before = 0;
  for (std::uint32_t layer = 0; layer < given.size(); ++layer) {
    const std::uint32_t stage = given[layer].value_or(before);
    if (stage < before) {
      bad_input("strategy", "layer {} is to be in stage {}, the one before it in stage {}: stages follow each other",
                layer, stage, before);
    }
    stages.push_back(stage);
    before = stage;
  }
  return stages;
}

}  // namespace

OperatorStrategies read_operator_strategies(const std::string& path, const models::Graph& network, Rank devices,
                                            std::vector<std::string>& notes) {
  if (path.ends_with(".toml")) return read_pattern_file(path, network, devices, notes);
  return strategies_of_checkpoint(path, network, notes);
}

void add_checkpoint(OperatorStrategies& read, OperatorStrategies checkpoint) {
  if (read.stages.empty()) read.is_checkpoint = true;
  if (read.is_checkpoint) read.stages.merge(checkpoint.stages);
  for (std::string& name : checkpoint.recomputed) {
    if (!read.strategies.contains(name)) read.recomputed.push_back(std::move(name));
  }
  read.others = std::move(checkpoint.strategies);
}

std::vector<std::uint32_t> layers_of_stages(const OperatorStrategies& read, const models::Graph& network,
                                            std::uint32_t stages) {
  if (read.stages.empty()) return {};
  const auto last = std::ranges::max_element(read.stages, {}, [](const auto& placed) { return placed.second; });
  if (read.is_checkpoint && last->second + 1 != stages) return {};
  if (last->second >= stages) {
    bad_input("strategy", "{}: stage {}; the last of {} (--stages) is {}", last->first, last->second,
              counted(stages, "stage"), stages - 1);
  }
  std::vector<std::uint32_t> layers(stages, 0);
  for (const std::uint32_t stage : stages_of_layers(read, network)) ++layers[stage];
  const std::vector<std::uint32_t> parts = hccl::parts_of_operators(network, layers);
  for (models::OperatorId id = 0; id < parts.size(); ++id) {
    const auto found = read.stages.find(network.operators[id].name);
    if (found == read.stages.end() || found->second == parts[id]) continue;
    bad_input("strategy", "{}: stage {}; before the first layer it can be 0, behind the last one {}",
              network.operators[id].name, found->second, stages - 1);
  }
  return layers;
}

std::vector<NodeStrategy> node_strategies(const models::Graph& network, const hccl::StrategyMap& strategies,
                                          Rank devices, std::span<const std::uint32_t> stages) {
  const hccl::WholeGraph whole(network);
  std::vector<NodeStrategy> nodes;
  std::map<std::string, std::size_t> place;  // of two operators with one key the last one counts
  const auto add = [&](NodeStrategy node) {
    const auto [found, is_new] = place.try_emplace(node.name, nodes.size());
    if (is_new) {
      nodes.push_back(std::move(node));
    } else {
      nodes[found->second] = std::move(node);
    }
  };
  for (models::OperatorId id = 0; id < network.operators.size(); ++id) {
    const models::Operator& op = network.operators[id];
    if (op.kind == models::OperatorKind::input) continue;
    const auto given = strategies.find(op.name);
    const hccl::OperatorStrategy strategy =
        given == strategies.end() ? hccl::batch_parallel(whole.signature(id), devices) : given->second;
    NodeStrategy node{.name = key_of(network, op), .stage = stages[id], .inputs = {}};
    const std::vector<hccl::Cuts> inputs = strategy.layout.has_value() ? parts_of(*strategy.layout) : strategy.inputs;
    node.inputs = seen_inputs(network, op, node.name, inputs);
    if (strategy.output.has_value()) node.output = seen(*strategy.output, op.shape().rank(), false);
    node.gathers_again = strategy.gathers_again;
    node.manual_split = strategy.manual_split;
    node.on_host = strategy.on_host;
    node.group_size = strategy.group_size;
    node.recompute = op.recompute;
    if (strategy.layout.has_value()) {
      node.device_matrix = strategy.layout->matrix.sizes;
      node.maps = strategy.layout->inputs;
      node.output_map = strategy.layout->output;
    }
    if (has_bias(op)) {
      node.inputs.resize(2);
      add(bias_strategy(network, op, node));
    }
    add(std::move(node));
  }
  return nodes;
}

bool cuts_operators(const std::string& path) {
  std::set<std::uint32_t> of_samples;
  for (const NodeStrategy& node : read_strategies(path).nodes) {
    // MindSpore's primitives begin with a capital, our operators without parameters do not.
    const bool has_parameters = !node.name.empty() && std::isupper(static_cast<unsigned char>(node.name.front())) != 0;
    for (std::size_t input = 0; input < node.inputs.size(); ++input) {
      const bool of_parameter = has_parameters && takes_parameters_first(node.name) == (input == 0);
      for (std::size_t axis = 0; axis < node.inputs[input].size(); ++axis) {
        if (node.inputs[input][axis] == 1) continue;
        if (axis > 0 || of_parameter) return true;
        of_samples.insert(node.inputs[input][axis]);
      }
    }
  }
  return of_samples.size() > 1;
}

}  // namespace hcclsim::study
