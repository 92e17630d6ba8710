#include "study/compare/plans/planned_network.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {

PlannedNetwork planned_network(const models::Graph& graph) {
  PlannedNetwork network{.layers = graph.layers};
  for (const models::Operator& op : graph.operators) {
    if (op.kind == models::OperatorKind::attention) {
      network.heads = std::gcd(network.heads, op.kv_heads);
      network.queries = std::gcd(network.queries, op.heads);
      network.features = std::gcd(network.features, op.shape().channels());
    } else if (op.kind == models::OperatorKind::dispatch) {
      network.experts = std::gcd(network.experts, op.shape().batch());
    } else if (op.kind == models::OperatorKind::token_embedding) {
      network.vocabulary = std::max(network.vocabulary, graph.parameters[op.parameters.front()].shape.front());
      network.rows = op.sequence;
    }
  }
  return network;
}

PlannedNpus planned_npus(const RunSpec& spec) {
  const auto [npus, of_server] = on_cluster(spec.platform, [&](sim::Cluster& cluster) {
    const Rank asked = spec.npus.value_or(cluster.size());
    if (asked > cluster.size()) {
      bad_input("option", "--npus {}: {} has {} NPUs; accepted: 1 to {}", asked, cluster.path(), cluster.size(),
                cluster.size());
    }
    std::uint32_t together = 0;
    for (Rank rank = 0; rank < asked; ++rank) together += cluster.npu(rank).server == cluster.npu(0).server ? 1 : 0;
    return std::pair(asked, together);
  });
  return {npus, of_server};
}

}  // namespace hcclsim::study
