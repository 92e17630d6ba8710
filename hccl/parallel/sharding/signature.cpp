#include "hccl/parallel/sharding/signature.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using models::Operator;
using models::OperatorId;
using models::OperatorKind;
using models::Shape;

/// Rows of each sequence in what an operator makes; 1 if it makes none.
std::uint32_t positions_of(const std::vector<std::uint32_t>& before, const models::Graph& graph, OperatorId id) {
  const Operator& op = graph.operators[id];
  switch (op.kind) {
    case OperatorKind::token_embedding:
    case OperatorKind::position_embedding:
    case OperatorKind::segment_embedding:
    case OperatorKind::class_token:
    case OperatorKind::patches:
    case OperatorKind::rotary:
    case OperatorKind::attention:
    case OperatorKind::select_rows:
      return op.sequence;
    case OperatorKind::reshape: {
      const bool same_rows = op.shape().batch() == graph.tensor(op.inputs.front()).shape.batch();
      return op.sequence > 1 || !same_rows ? op.sequence : before[op.inputs.front().op];
    }
    case OperatorKind::join_rows:
    case OperatorKind::sum_rows:
    case OperatorKind::factorization:
    case OperatorKind::flatten:
      return 1;
    default:
      return op.inputs.empty() ? 1 : before[op.inputs.front().op];
  }
}

}  // namespace

std::size_t Signature::find(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::find(dimensions, name, &Dimension::name) - dimensions.begin());
}

WholeGraph::WholeGraph(const models::Graph& graph) : graph_(&graph), packed_(graph.operators.size(), false) {
  for (OperatorId id = 0; id < graph.operators.size(); ++id) {
    positions_.push_back(positions_of(positions_, graph, id));
    const Operator& op = graph.operators[id];
    const bool packs = op.kind == OperatorKind::attention && op.inputs.size() == 1 && op.heads == op.kv_heads;
    if (packs) packed_[op.inputs.front().op] = true;
    const bool behind = !op.inputs.empty() && op.kind != OperatorKind::combine;
    const bool dispatches = op.kind == OperatorKind::dispatch;
    const bool of_sequences = dispatches && op.of_parts && positions_[op.inputs.front().op] > 1;
    const std::uint32_t samples = dispatches ? view(op.inputs.front()).size(0)
                                  : behind   ? samples_of_rows_[op.inputs.front().op]
                                             : 0;
    samples_of_rows_.push_back(samples);
    has_parts_of_sequences_.push_back(dispatches ? of_sequences
                                                 : behind && has_parts_of_sequences_[op.inputs.front().op]);
  }
}

Shape WholeGraph::view(models::Value value) const {
  const Shape& shape = graph_->tensor(value).shape;
  const std::uint32_t samples = samples_of_rows(value);
  if (samples > 0 && has_parts_of_sequences_[value.op] && shape.size(1) % samples == 0) {
    return {shape.size(0), samples, shape.size(1) / samples, shape.size(2)};
  }
  const std::uint32_t positions = positions_[value.op];
  if (shape.rank() != 2 || positions == 1 || shape.batch() % positions != 0) return shape;
  return {shape.batch() / positions, positions, shape.channels()};
}

Signature WholeGraph::signature(OperatorId id) const {
  const OperatorRule* const rule = rule_of(op(id).kind);
  if (rule == nullptr) {
    bad_input("strategy", "{}: operators of kind {} cannot be cut over devices", op(id).name,
              models::name_of(op(id).kind));
  }
  return rule->signature(*this, id);
}

const OperatorRule* rule_of(OperatorKind kind) {
  static const std::array<std::span<const OperatorRule>, 9> families{
      elementwise_rules(), product_rules(), norm_rules(),   embedding_rules(), image_rules(),
      row_rules(),         loss_rules(),    expert_rules(), general_rules()};
  for (const std::span<const OperatorRule> family : families) {
    const auto rule = std::ranges::find(family, kind, &OperatorRule::kind);
    if (rule != family.end()) return &*rule;
  }
  return nullptr;
}

}  // namespace hcclsim::hccl
