#include "hccl/training/numerics/batch_parts.hpp"

#include <span>

#include "base/error.hpp"
#include "hccl/training/numerics/parameter_parts.hpp"

namespace hcclsim::hccl {
namespace {

template <typename Element>
void take_all(const TensorLayout& layout, Rank rank, const std::vector<Element>& whole, std::vector<Element>& part) {
  part.resize(layout.slice_shape().elements());
  take_part<Element>(layout, rank, whole, part);
}

}  // namespace

BatchParts::BatchParts(const models::Graph& network, const ShardedGraph& stage)
    : input_(stage.input), labels_(stage.labels) {
  if (input_.shape != network.operators.front().shape()) {
    internal_error("{}: a batch of {} is laid out as {}", network.title, to_string(network.operators.front().shape()),
                   to_string(input_));
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

std::uint32_t BatchParts::label_rows() const {
  std::uint32_t rows = 0;
  for (const TensorLayout& layout : labels_) rows += layout.slice_shape().batch();
  return rows;
}

}  // namespace hcclsim::hccl
