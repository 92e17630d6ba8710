#pragma once

#include <span>
#include <vector>

#include "device/numerics/computation.hpp"
#include "device/numerics/worker_pool.hpp"
#include "models/lowering/lower.hpp"
#include "tests/support/training/net_oracle.hpp"

/// Networks to compute with in tests: the oracle's weights and batches, as a Computation takes them.
namespace hcclsim::device {

inline std::vector<std::uint32_t> production_order(const models::Graph& graph) {
  std::vector<std::uint32_t> order;
  for (const models::Gradient& gradient : models::lower(graph, {}).gradients) order.push_back(gradient.parameter);
  return order;
}

inline models::Batch batch_of(const models::Graph& graph, const test::ReferenceBatch& batch) {
  return {.samples = graph.batch(),
          .inputs = {batch.inputs.begin(), batch.inputs.end()},
          .tokens = batch.tokens,
          .labels = batch.labels};
}

/// Computation and weights of a network, by default those of the recipe.
struct SampleNet {
  SampleNet(const models::Graph& graph, const std::vector<test::Tensor>& parameters,
            const ComputationOptions& options = {})
      : computation(graph, production_order(graph), options), weights(computation) {
    for (std::size_t i = 0; i < computation.parameters().size(); ++i) {
      const test::Tensor& values = parameters[computation.parameters()[i].parameter];
      computation.to_storage(i, std::vector<float>(values.begin(), values.end()),
                             computation.parameters()[i].in(weights.values()));
    }
    WorkerPool pool(1);
    weights.prepare(pool);
  }
  explicit SampleNet(const models::Graph& graph, std::uint64_t seed = 1)
      : SampleNet(graph, test::initial_parameters(graph, seed)) {}

  [[nodiscard]] std::vector<float> flat() const { return std::vector<float>(computation.elements()); }
  /// One parameter of a flat buffer, row-major.
  [[nodiscard]] test::Tensor plain(std::size_t gradient, std::span<const float> from) const {
    std::vector<float> values(computation.parameters()[gradient].elements);
    computation.to_plain(gradient, computation.parameters()[gradient].in(from), values);
    return {values.begin(), values.end()};
  }

  Computation computation;
  Weights weights;
};

}  // namespace hcclsim::device
