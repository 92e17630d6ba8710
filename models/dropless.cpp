#include "models/dropless.hpp"

#include <cstdint>
#include <vector>

namespace hcclsim::models {

Graph with_places_for_all(Graph graph) {
  std::vector<std::uint32_t> places(graph.operators.size(), 0);  // of operators on the rows of dropless experts
  for (OperatorId id = 0; id < graph.operators.size(); ++id) {
    Operator& op = graph.operators[id];
    if (op.inputs.empty() || op.kind == OperatorKind::combine) continue;
    const bool begins = op.kind == OperatorKind::dispatch && op.dropless;
    places[id] = begins ? graph.input_of(op).batch() : places[op.inputs.front().op];
    if (places[id] == 0) continue;
    for (Tensor& output : op.outputs) output.shape.resize(1, places[id]);
  }
  return graph;
}

}  // namespace hcclsim::models
