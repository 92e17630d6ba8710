#include "models/dropless.hpp"

#include <cstdint>
#include <vector>

namespace hcclsim::models {

namespace {

/// Resizes what works on rows of experts; `places_of` a dispatch: as many as its experts are to have, 0: as they are.
template <class Places>
Graph with_places(Graph graph, const Places& places_of) {
  std::vector<std::uint32_t> places(graph.operators.size(), 0);  // of operators on rows of experts
  for (OperatorId id = 0; id < graph.operators.size(); ++id) {
    Operator& op = graph.operators[id];
    if (op.inputs.empty() || op.kind == OperatorKind::combine) continue;
    places[id] = op.kind == OperatorKind::dispatch ? places_of(op) : places[op.inputs.front().op];
    if (places[id] == 0) continue;
    for (Tensor& output : op.outputs) output.shape.resize(1, places[id]);
  }
  return graph;
}

}  // namespace

Graph with_places_for_all(Graph graph) {
  const auto rows = [&graph](const Operator& dispatch) {
    return dispatch.dropless ? graph.input_of(dispatch).batch() : 0U;
  };
  return with_places(graph, rows);
}

Graph with_even_places(Graph graph, std::uint32_t parts) {
  const auto even = [&graph, parts](const Operator& dispatch) {
    const std::uint32_t sequences = graph.input_of(dispatch).batch() / dispatch.sequence;
    const std::uint32_t each = dispatch.shape().size(1) / sequences;
    return dispatch.of_parts ? sequences * ((each + parts - 1) / parts * parts) : 0U;
  };
  return with_places(graph, even);
}

}  // namespace hcclsim::models
