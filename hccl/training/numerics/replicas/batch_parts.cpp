#include "hccl/training/numerics/replicas/batch_parts.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "hccl/training/numerics/parameter_parts.hpp"

namespace hcclsim::hccl {
namespace {

template <typename Element>
void take_all(const TensorLayout& layout, Rank rank, const std::vector<Element>& whole, std::vector<Element>& part) {
  part.resize(layout.slice_shape().elements());
  take_part<Element>(layout, rank, whole, part);
}

const TensorLayout& layout_of(const ShardedGraph& stage, models::Value value) {
  const std::optional<TensorLayout>& layout = stage.values.at(stage.graph.first_values()[value.op] + value.output);
  if (!layout.has_value()) {
    internal_error("{}: nobody knows which part of {} a device has", stage.graph.title,
                   stage.graph.operators[value.op].name);
  }
  return *layout;
}

}  // namespace

BatchParts::BatchParts(const ShardedGraph& first, const ShardedGraph& last) : input_(layout_of(first, 0)) {
  const auto is_loss = [](const models::Operator& op) {
    return op.kind == models::OperatorKind::loss || op.kind == models::OperatorKind::binary_loss;
  };
  const auto loss = std::ranges::find_if(last.graph.operators, is_loss);
  if (loss == last.graph.operators.end()) internal_error("{}: its last stage has no loss", last.graph.title);
  for (const models::Value logits : loss->inputs) {
    TensorLayout rows = layout_of(last, logits);
    std::vector<std::uint32_t> sizes = rows.shape.sizes();
    sizes.pop_back();  // the classes
    rows.map.pop_back();
    rows.shape = models::Shape(std::move(sizes));
    labels_.push_back(std::move(rows));
  }
}

void BatchParts::take(Rank rank, models::Batch& batch) const {
  batch.samples = input_.slice_shape().batch();
  if (!whole.inputs.empty()) take_all(input_, rank, whole.inputs, batch.inputs);
  if (!whole.tokens.empty()) take_all(input_, rank, whole.tokens, batch.tokens);
  batch.labels.clear();
  std::size_t first = 0;
  for (const TensorLayout& layout : labels_) {
    std::vector<std::int32_t> part(layout.slice_shape().elements());
    const std::size_t rows = layout.shape.elements();
    take_part<std::int32_t>(layout, rank, std::span(whole.labels).subspan(first, rows), part);
    batch.labels.insert(batch.labels.end(), part.begin(), part.end());
    first += rows;
  }
}

}  // namespace hcclsim::hccl
