#include "study/files/strategy/batch_parallel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using models::OperatorKind;

/// MindSpore's primitive of an operator with parameters.
std::string_view primitive_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::convolution:
      return "Conv2D";
    case OperatorKind::batch_norm:
      return "BatchNorm";
    case OperatorKind::linear:
      return "MatMul";
    case OperatorKind::layer_norm:
      return "LayerNorm";
    case OperatorKind::rms_norm:
      return "RmsNorm";
    case OperatorKind::token_embedding:
    case OperatorKind::position_embedding:
    case OperatorKind::segment_embedding:
      return "Gather";
    case OperatorKind::class_token:
      return "Concat";
    default:
      return "Add";
  }
}

/// Axes of each input: "2, 1".
std::string axes_text(const std::vector<std::vector<std::uint32_t>>& inputs) {
  std::vector<std::size_t> axes;
  for (const std::vector<std::uint32_t>& cuts : inputs) axes.push_back(cuts.size());
  return fmt::format("{}", fmt::join(axes, ", "));
}

std::vector<std::uint32_t> uncut(std::size_t axes) { return std::vector<std::uint32_t>(axes, 1); }

/// Of a tensor with samples: the axis of the whole batch has `devices` times the size that one device has.
std::vector<std::uint32_t> cut_samples(const models::Shape& shape, Rank devices) {
  std::vector<std::uint32_t> cuts = uncut(shape.rank());
  const std::uint64_t whole = std::uint64_t{shape.batch()} * devices;
  if (!cuts.empty()) cuts.front() = static_cast<std::uint32_t>(std::gcd(whole, std::uint64_t{devices}));
  return cuts;
}

/// What MindSpore's optimizers put before the name of a parameter to name its states.
std::vector<std::string_view> states_of(models::Optimizer optimizer) {
  using enum models::Optimizer;
  switch (optimizer) {
    case sgd:
      return {};
    case momentum:
    case nesterov:
    case lars:
      return {"moments"};
    case adam:
      return {"moment1", "moment2"};
    case adamw:
      return {"adam_m", "adam_v"};
    case lamb:
      return {"lamb_m", "lamb_v"};
  }
  internal_error("unknown optimizer {}", static_cast<int>(optimizer));
}

/// Of a batch norm; MindSpore's primitive reads them behind weight and bias.
constexpr std::array<std::string_view, 2> moving_statistics{"moving_mean", "moving_variance"};

/// Of a tensor of this shape that is not cut.
ParameterLayout whole_layout(std::string name, const std::vector<std::uint32_t>& shape, Rank devices) {
  return {.name = std::move(name),
          .dev_matrix = {devices},
          .tensor_map = std::vector<std::int32_t>(shape.size(), -1),
          .tensor_shape = {shape.begin(), shape.end()}};
}

/// Of a parameter that is cut, on a device. Blocks that lie one behind the other in it are one axis. An axis that is
/// cut along several axes of the devices is seen in factors, one for each of them, as MindSpore does.
ParameterLayout cut_layout(const hccl::ShardedGraph& stage, std::uint32_t index) {
  const hccl::TensorLayout& layout = stage.parameters[index];
  const models::Parameter& parameter = stage.graph.parameters[index];
  ParameterLayout result{
      .name = parameter.name, .dev_matrix = layout.devices.sizes, .tensor_map = {}, .tensor_shape = {}};
  const std::size_t blocks = layout.map.size() - parameter.shape.size();
  for (std::size_t axis = 0; axis < parameter.shape.size(); ++axis) {
    std::vector<std::uint32_t> cutting = layout.map[axis + blocks];
    for (std::size_t block = 0; axis == 0 && block < blocks; ++block) {
      cutting.insert(cutting.begin(), layout.map[block].begin(), layout.map[block].end());
    }
    result.tensor_shape.insert(result.tensor_shape.end(), cutting.empty() ? 0 : cutting.size() - 1, 1);
    result.tensor_shape.push_back(parameter.shape[axis]);
    for (const std::uint32_t cut : cutting) result.tensor_map.push_back(static_cast<std::int32_t>(cut));
    if (cutting.empty()) result.tensor_map.push_back(-1);
  }
  std::int64_t offset = 0;
  for (const std::uint32_t rows : layout.rows) {
    result.split_shape.push_back(rows);
    result.indices_offset.push_back(offset);
    offset += rows;
  }
  return result;
}

/// Distance of the devices that share a parameter.
std::int32_t shard_step(const BatchParallel& of, std::uint32_t index) {
  if (of.sharded == nullptr || of.sharded->mirrors[index] == hccl::ShardedGraph::no_family) return 1;
  const std::vector<Rank>& copies = of.sharded->families[of.sharded->mirrors[index]].front();
  return static_cast<std::int32_t>(copies[1] - copies[0]);
}

/// Of a parameter and its copies.
void add_layouts(const BatchParallel& of, std::uint32_t index, std::vector<ParameterLayout>& layouts) {
  const models::Parameter& parameter = of.graph.parameters[index];
  const models::ParameterShare* const share = of.program == nullptr ? nullptr : &of.program->parameters[index];
  const auto add = [&](std::string name, bool shared) {
    ParameterLayout& layout = layouts.emplace_back(of.sharded == nullptr ? whole_layout("", parameter.shape, of.devices)
                                                                         : cut_layout(*of.sharded, index));
    layout.name = std::move(name);
    if (!shared) return;
    layout.shard_step = shard_step(of, index);
    layout.shard_size = static_cast<std::int32_t>(of.sharded == nullptr ? of.shard_ranks : share->shards);
  };
  const bool shared = share != nullptr && share->shards > 1;
  add(parameter.name, shared);
  if (!of.optimizer.has_value()) return;
  const bool updated = share == nullptr || !share->borrowed;
  for (const std::string_view state : states_of(*of.optimizer)) {
    if (updated) add(fmt::format("{}.{}", state, parameter.name), shared);
  }
  if (of.accumulates) add(fmt::format("accu_grads.{}", parameter.name), shared && share->sums_parts);
}

/// "bn1.moving_mean" of the operator whose weight is "bn1.weight".
void add_moving_statistics(const BatchParallel& of, const models::Operator& op, std::vector<ParameterLayout>& layouts) {
  const models::Parameter& weight = of.graph.parameters[op.parameters.front()];
  const std::string cell = weight.name.substr(0, weight.name.rfind('.'));
  for (const std::string_view statistic : moving_statistics) {
    layouts.push_back(whole_layout(fmt::format("{}.{}", cell, statistic), weight.shape, of.devices));
  }
}

/// The strategy of an operator under its first parameter; the bias of a product is an operator of its own.
NodeStrategy strategy_of(const BatchParallel& of, const models::Operator& op, bool product) {
  std::string name = node_name(of.graph, op);
  std::vector<std::vector<std::uint32_t>> parameters;
  const std::size_t own = product ? 1 : op.parameters.size();
  for (std::size_t i = 0; i < own; ++i) {
    parameters.push_back(uncut(of.graph.parameters[op.parameters[i]].shape.size()));
  }
  if (op.kind == OperatorKind::batch_norm) parameters.resize(own + moving_statistics.size(), uncut(1));
  std::vector<std::vector<std::uint32_t>> inputs;
  for (const models::Value input : op.inputs) {
    inputs.push_back(cut_samples(of.graph.tensor(input).shape, of.devices));
  }
  const auto place = takes_parameters_first(name) ? inputs.begin() : inputs.end();
  inputs.insert(place, parameters.begin(), parameters.end());
  return {std::move(name), of.stage, std::move(inputs)};
}

/// Devices that have the same of a parameter as a device, that included.
std::vector<Rank> copies_of(const hccl::ShardedGraph& graph, std::uint32_t parameter, Rank device) {
  if (graph.mirrors.empty()) {
    std::vector<Rank> all(graph.devices);
    std::iota(all.begin(), all.end(), Rank{0});
    return all;
  }
  const std::uint32_t mirror = graph.mirrors[parameter];
  if (mirror == hccl::ShardedGraph::no_family) return {device};
  return *std::ranges::find_if(graph.families[mirror], [&](const std::vector<Rank>& group) {
    return std::ranges::find(group, device) != group.end();
  });
}

/// Devices of a stage that keep the same part of every parameter as one of them. Those that have the same of one and
/// share it keep the parts in their order, one group of so many after the other.
std::vector<Rank> same_weights(const hccl::ShardedGraph& graph, const models::Program& program, Rank device) {
  std::vector<bool> same(graph.devices, true);
  for (std::uint32_t parameter = 0; parameter < program.parameters.size(); ++parameter) {
    const std::vector<Rank> copies = copies_of(graph, parameter, device);
    const std::uint32_t shards = program.parameters[parameter].shards;
    std::vector<bool> of_parameter(graph.devices, false);
    const auto own = static_cast<std::size_t>(std::ranges::find(copies, device) - copies.begin());
    for (std::size_t place = own % shards; place < copies.size(); place += shards) of_parameter[copies[place]] = true;
    for (Rank other = 0; other < graph.devices; ++other) same[other] = same[other] && of_parameter[other];
  }
  std::vector<Rank> devices;
  for (Rank other = 0; other < graph.devices; ++other) {
    if (same[other]) devices.push_back(other);
  }
  return devices;
}

}  // namespace

std::string node_name(const models::Graph& graph, const models::Operator& op) {
  return fmt::format("{}_{}", primitive_of(op.kind), graph.parameters[op.parameters.front()].name);
}

std::string bias_name(const models::Graph& graph, const models::Operator& op) {
  return fmt::format("BiasAdd_{}", graph.parameters[op.parameters[1]].name);
}

bool takes_parameters_first(std::string_view key) { return key.starts_with("Gather_") || key.starts_with("Concat_"); }

StrategyMap batch_parallel_strategies(const BatchParallel& of) {
  StrategyMap strategies;
  std::map<std::string, std::size_t> place;  // of two operators with one key the last one counts
  const auto add = [&](NodeStrategy node) {
    const auto [found, is_new] = place.try_emplace(node.name, strategies.nodes.size());
    if (is_new) {
      strategies.nodes.push_back(std::move(node));
    } else {
      strategies.nodes[found->second] = std::move(node);
    }
  };
  for (const models::Operator& op : of.graph.operators) {
    if (op.parameters.empty() || models::communicates(op.kind)) continue;
    const bool product = op.kind == OperatorKind::convolution || op.kind == OperatorKind::linear;
    add(strategy_of(of, op, product));
    if (!product || op.parameters.size() == 1) continue;
    add({bias_name(of.graph, op), of.stage, {cut_samples(op.shape(), of.devices), uncut(1)}});
  }
  strategies.parameters = layouts_of(of);
  return strategies;
}

std::vector<ParameterLayout> layouts_of(const BatchParallel& of) {
  std::vector<ParameterLayout> layouts;
  for (std::uint32_t index = 0; index < of.graph.parameters.size(); ++index) add_layouts(of, index, layouts);
  for (const models::Operator& op : of.graph.operators) {
    if (of.only_trainable || op.kind != OperatorKind::batch_norm) continue;
    add_moving_statistics(of, op, layouts);
  }
  return layouts;
}

void require_batch_parallel(const StrategyMap& loaded, const BatchParallel& of, const std::string& path,
                            std::vector<std::string>& notes) {
  const StrategyMap own = batch_parallel_strategies(of);
  std::map<std::string_view, const NodeStrategy*> nodes;
  for (const NodeStrategy& node : own.nodes) nodes.emplace(node.name, &node);
  std::size_t foreign = 0;
  for (const NodeStrategy& node : loaded.nodes) {
    const auto found = nodes.find(node.name);
    if (found == nodes.end()) {
      ++foreign;
      continue;
    }
    const std::vector<std::vector<std::uint32_t>>& expected = found->second->inputs;
    const auto axes = [](const std::vector<std::uint32_t>& cuts) { return cuts.size(); };
    if (!std::ranges::equal(node.inputs, expected, {}, axes, axes)) {
      bad_input("strategy", "{}: {}: its inputs have {} axes, the network's operator has {}", path, node.name,
                axes_text(node.inputs), axes_text(expected));
    }
    if (node.inputs == expected) continue;
    bad_input("unsupported",
              "{}: {} is cut as {}; on these devices samples alone would be cut as {}; give the file to --strategy",
              path, node.name, fmt::join(node.inputs, ", "), fmt::join(expected, ", "));
  }
  if (foreign > 0) {
    notes.push_back(fmt::format("{}: {} of {} strategies are of operators that this rank does not have", path, foreign,
                                loaded.nodes.size()));
  }
}

GroupMap groups_of(const hccl::Plan& plan, Rank rank, const hccl::ShardedGraph& graph, const models::Program& program) {
  GroupMap map;
  for (const hccl::GroupFamily& family : plan.families) {
    for (const hccl::Communicator& group : family.groups) {
      if (group.ranks.size() < 2 || std::ranges::find(group.ranks, rank) == group.ranks.end()) continue;
      std::string name = group_name(group.ranks, plan.ranks());
      const auto same = [&](const auto& one) { return one.first == name; };
      if (std::ranges::none_of(map.groups, same)) map.groups.emplace_back(std::move(name), group.ranks);
    }
  }
  const Rank first = rank / graph.devices * graph.devices;
  for (const Rank device : same_weights(graph, program, rank - first)) map.restore_ranks.push_back(first + device);
  return map;
}

}  // namespace hcclsim::study
