#pragma once

#include "models/graph.hpp"

/// A network that is applied, not trained.
namespace hcclsim::models {

/// The network without its losses, whose logits are then what it gives, and without dropout.
[[nodiscard]] Graph inference_graph(Graph graph);

/// What nobody in the graph reads: of a network without losses, its results.
[[nodiscard]] std::vector<Tensor> results_of(const Graph& graph);

}  // namespace hcclsim::models
