#include "models/repeated_heads.hpp"

#include <utility>

#include "models/graph_copy.hpp"

namespace hcclsim::models {
namespace {

/// What repeats the heads of one of the inputs of `attention`.
Operator repetition(const Graph& graph, const Operator& attention, std::size_t input) {
  Operator op;
  op.name = attention.name + (input == 1 ? ".keys" : ".values");
  op.kind = OperatorKind::repeat_heads;
  op.inputs = {attention.inputs[input]};
  op.outputs = {graph.tensor(attention.inputs[input])};
  Shape& shape = op.outputs.front().shape;
  shape.resize(1, shape.channels() / attention.kv_heads * attention.heads);
  op.sequence = attention.sequence;
  op.heads = attention.heads;
  op.kv_heads = attention.kv_heads;
  op.layer = attention.layer;
  op.recompute = attention.recompute;
  return op;
}

}  // namespace

Graph repeat_shared_heads(const Graph& graph, std::uint32_t devices) {
  GraphCopy copy(graph);
  for (const Operator& whole : graph.operators) {
    const bool repeats = whole.kind == OperatorKind::attention && whole.inputs.size() == 3 &&
                         whole.kv_heads % devices != 0 && whole.heads % devices == 0;
    if (!repeats) {
      copy.copy_next();
      continue;
    }
    Operator attention = copy.copied_next();
    for (const std::size_t input : {1U, 2U}) {
      attention.inputs[input] = copy.append(repetition(copy.made(), attention, input));
    }
    attention.kv_heads = attention.heads;
    copy.append_next(std::move(attention));
  }
  return std::move(copy).finish();
}

}  // namespace hcclsim::models
