#include "study/strategy/batch_parallel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

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

}  // namespace

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
    const auto name = [&](std::string_view primitive, std::uint32_t parameter) {
      return fmt::format("{}_{}", primitive, of.graph.parameters[parameter].name);
    };
    // A bias is an operator of its own.
    const bool product = op.kind == OperatorKind::convolution || op.kind == OperatorKind::linear;
    NodeStrategy node{name(primitive_of(op.kind), op.parameters.front()), of.stage, {}};
    for (const models::Value input : op.inputs) {
      node.inputs.push_back(cut_samples(of.graph.tensor(input).shape, of.devices));
    }
    const std::size_t own = product ? 1 : op.parameters.size();
    for (std::size_t i = 0; i < own; ++i) {
      node.inputs.push_back(uncut(of.graph.parameters[op.parameters[i]].shape.size()));
    }
    add(std::move(node));
    if (!product || op.parameters.size() == 1) continue;
    add({name("BiasAdd", op.parameters[1]), of.stage, {cut_samples(op.shape(), of.devices), uncut(1)}});
  }
  for (std::uint32_t index = 0; index < of.graph.parameters.size(); ++index) {
    const models::Parameter& parameter = of.graph.parameters[index];
    ParameterLayout layout{.name = parameter.name,
                           .dev_matrix = {of.devices},
                           .tensor_map = std::vector<std::int32_t>(parameter.shape.size(), -1),
                           .tensor_shape = {parameter.shape.begin(), parameter.shape.end()}};
    if (of.program != nullptr && of.program->parameters[index].shards > 1) {
      layout.shard_step = 1;
      layout.shard_size = static_cast<std::int32_t>(of.shard_ranks);
    }
    strategies.parameters.push_back(std::move(layout));
  }
  return strategies;
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
              "{}: {} is cut as {}; without operator strategies, which are not there yet, it is batch parallel: {}",
              path, node.name, fmt::join(node.inputs, ", "), fmt::join(expected, ", "));
  }
  if (foreign > 0) {
    notes.push_back(fmt::format("{}: {} of {} strategies are of operators that this rank does not have", path, foreign,
                                loaded.nodes.size()));
  }
}

GroupMap groups_of(const hccl::Plan& plan, Rank rank, Rank devices, Rank shard_ranks) {
  GroupMap map;
  for (const hccl::GroupFamily& family : plan.families) {
    for (const hccl::Communicator& group : family.groups) {
      if (group.ranks.size() < 2 || std::ranges::find(group.ranks, rank) == group.ranks.end()) continue;
      std::string name = group_name(group.ranks, plan.ranks());
      const auto same = [&](const auto& one) { return one.first == name; };
      if (std::ranges::none_of(map.groups, same)) map.groups.emplace_back(std::move(name), group.ranks);
    }
  }
  // Ranks that have the same part of all that is shared.
  const Rank first = rank / devices * devices;
  for (Rank place = (rank - first) % shard_ranks; place < devices; place += shard_ranks) {
    map.restore_ranks.push_back(first + place);
  }
  return map;
}

}  // namespace hcclsim::study
