#include "hccl/parallel/sharding/strategy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

std::string tuple_text(const Cuts& cuts) { return fmt::format("({})", fmt::join(cuts, ",")); }

std::string map_text(const TensorMap& map) {
  std::vector<std::string> axes;
  for (const std::vector<std::uint32_t>& axis : map) {
    axes.push_back(axis.empty() ? "-" : axis.size() == 1 ? fmt::to_string(axis.front()) : tuple_text(axis));
  }
  return fmt::format("({})", fmt::join(axes, ","));
}

template <typename Tensor, typename Text>
std::string tensors_text(const std::vector<Tensor>& inputs, const std::optional<Tensor>& output, Text text) {
  std::vector<std::string> texts;
  for (const Tensor& input : inputs) texts.push_back(text(input));
  const std::string behind = output.has_value() ? " -> " + text(*output) : "";
  return fmt::format("{}{}", fmt::join(texts, ", "), behind);
}

}  // namespace

StrategyMap match_strategies(const models::Graph& graph,
                             const std::vector<std::pair<std::string, OperatorStrategy>>& patterns) {
  StrategyMap strategies;
  for (const auto& [pattern, strategy] : patterns) {
    bool found = false;
    for (const models::Operator& op : graph.operators) {
      if (!matches(pattern, op.name)) continue;
      strategies[op.name] = strategy;
      found = true;
    }
    if (!found) bad_input("strategy", "'{}': {} has no operator with such a name", pattern, graph.title);
  }
  return strategies;
}

std::string to_string(const OperatorStrategy& strategy) {
  if (!strategy.layout.has_value()) return tensors_text(strategy.inputs, strategy.output, tuple_text);
  const LayoutStrategy& layout = *strategy.layout;
  return fmt::format("({}): {}", fmt::join(layout.matrix.sizes, ","),
                     tensors_text(layout.inputs, layout.output, map_text));
}

}  // namespace hcclsim::hccl
