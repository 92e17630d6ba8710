#include "study/plan_search/planned_network.hpp"

#include <algorithm>
#include <numeric>

namespace hcclsim::study {

PlannedNetwork planned_network(const models::Graph& graph) {
  PlannedNetwork network{.layers = graph.layers};
  for (const models::Operator& op : graph.operators) {
    if (op.kind == models::OperatorKind::attention) {
      network.heads = std::gcd(network.heads, op.kv_heads);
      network.features = std::gcd(network.features, op.shape().channels());
    } else if (op.kind == models::OperatorKind::token_embedding) {
      network.vocabulary = std::max(network.vocabulary, graph.parameters[op.parameters.front()].shape.front());
      network.rows = op.sequence;
    }
  }
  return network;
}

}  // namespace hcclsim::study
