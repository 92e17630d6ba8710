#include "models/lowering/backward_order.hpp"

#include <algorithm>
#include <tuple>

namespace hcclsim::models {

std::vector<OperatorId> backward_order(const Graph& graph) {
  const std::vector<Operator>& operators = graph.operators;
  const auto count = static_cast<std::uint32_t>(operators.size());

  std::vector<std::uint32_t> distance(count, 0);
  for (OperatorId id = count; id-- > 0;) {
    for (const Value input : operators[id].inputs) {
      distance[input.op] = std::max(distance[input.op], distance[id] + 1);
    }
  }
  const auto key = [&](OperatorId id) {
    const Operator& op = operators[id];
    const bool strided = op.kind == OperatorKind::convolution && op.window.stride > 1;
    const bool batch_norm = op.kind == OperatorKind::batch_norm;
    // Gradients go to other stages that have the parameter when nothing else is left.
    const bool shares = communicates(op.kind) && !op.parameters.empty();
    return std::tuple(~op.chunk, shares, strided ? distance[op.inputs.front().op] - 1 : distance[id],
                      batch_norm ? 0 : 1, batch_norm ? count - id : id);
  };
  std::vector<OperatorId> order;
  for (OperatorId id = 0; id < count; ++id) {
    if (operators[id].kind != OperatorKind::input) order.push_back(id);
  }
  std::ranges::sort(order, {}, key);
  return order;
}

}  // namespace hcclsim::models
