#include "models/inference.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::models {

Graph inference_graph(Graph graph) {
  const auto is_loss = [](const Operator& op) {
    return op.kind == OperatorKind::loss || op.kind == OperatorKind::binary_loss;
  };
  // Nobody reads a loss, and it comes last: the numbers of the others stay.
  while (!graph.operators.empty() && is_loss(graph.operators.back())) graph.operators.pop_back();
  if (std::ranges::any_of(graph.operators, is_loss)) internal_error("{}: a loss is not the last operator", graph.title);
  for (Operator& op : graph.operators) op.drop_rate = 0;
  return graph;
}

std::vector<Tensor> results_of(const Graph& graph) {
  const std::vector<std::uint32_t> first = graph.first_values();
  const std::vector<std::uint32_t> readers = graph.consumer_counts();
  std::vector<Tensor> results;
  for (OperatorId id = 0; id < graph.operators.size(); ++id) {
    for (std::uint32_t output = 0; output < graph.operators[id].outputs.size(); ++output) {
      if (readers[first[id] + output] == 0) results.push_back(graph.tensor({id, output}));
    }
  }
  return results;
}

}  // namespace hcclsim::models
