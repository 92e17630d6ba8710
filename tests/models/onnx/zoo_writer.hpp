#pragma once

#include <string>

#include "models/graph.hpp"

namespace hcclsim::models::onnx {

/// How exporters differ.
enum class Style {
  whole,       ///< operators of new sets: LayerNormalization; shapes as constants
  decomposed,  ///< norms in small operators, shapes computed from shapes, GELU by tanh, products with their factors cut
};

/// A network of the zoo as a file of ONNX, with a symbolic batch. The loss is left out.
[[nodiscard]] std::string write_zoo_graph(const Graph& graph, Style style);

}  // namespace hcclsim::models::onnx
