#include <algorithm>
#include <numeric>
#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

/// Operators that say what they cost and not what they compute, and reshapes: the first axis of every tensor is taken
/// for samples, or rows of samples, and is the one that can be cut; of a reshape that keeps them, features too.
namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;
using models::Shape;

/// Samples and positions can be cut.
Signature rows_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const std::vector<std::size_t> rows = writer.rows(whole.view(id));
  const std::size_t features = writer.whole("features", "what the operator does along the features of a row is open");
  const models::Operator& op = whole.op(id);
  for (const models::Value input : op.inputs) writer.input(whole.view(input), joined(rows, features));
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    const Shape weight = parameter_shape(whole, id, i);
    writer.parameter(weight, std::vector<std::size_t>(weight.rank(), features));
  }
  writer.signature().optional_parameters = op.parameters.size();
  writer.output(whole.view(id), joined(rows, features));
  return writer.finish();
}

Signature general_signature(const WholeGraph& whole, OperatorId id) {
  if (whole.op(id).work.by_rows) return rows_signature(whole, id);
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const Shape out = whole.view(id);
  std::uint32_t samples = out.size(0);
  for (const models::Value input : op.inputs) {
    if (whole.view(input).size(0) > 1) samples = std::gcd(samples, whole.view(input).size(0));
  }
  const std::size_t batch = writer.dimension("batch", samples);
  const std::size_t others = writer.whole("features", "what the operator does along other axes than the first is open");
  const auto axes_of = [&](const Shape& view) {
    std::vector<std::size_t> axes(view.rank(), others);
    if (view.size(0) > 1) axes.front() = batch;
    return axes;
  };
  for (const models::Value input : op.inputs) writer.input(whole.view(input), axes_of(whole.view(input)));
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    const Shape weight = parameter_shape(whole, id, i);
    writer.parameter(weight, std::vector<std::size_t>(weight.rank(), others));
  }
  writer.signature().optional_parameters = op.parameters.size();
  writer.output(out, axes_of(out));
  return writer.finish();
}

/// Rows that only become those of sequences, or of none, keep their features; what does not change can be cut anywhere.
Signature reshape_signature(const WholeGraph& whole, OperatorId id) {
  const Shape in = whole.view(whole.op(id).inputs.front());
  const Shape out = whole.view(id);
  const bool of_rows = std::min(in.rank(), out.rank()) > 1 && std::max(in.rank(), out.rank()) < 4;
  const bool same_features = of_rows && in.size(in.rank() - 1) == out.size(out.rank() - 1);
  if (!same_features) return general_signature(whole, id);
  SignatureWriter writer;
  const std::size_t batch = writer.dimension("batch", std::gcd(in.size(0), out.size(0)));
  const std::size_t others =
      in == out ? writer.dimension("positions") : writer.whole("positions", "rows are put together to other sequences");
  const std::size_t features = writer.dimension("features");
  const auto axes_of = [&](const Shape& view) {
    std::vector<std::size_t> axes(view.rank(), others);
    axes.front() = batch;
    axes.back() = features;
    return axes;
  };
  writer.input(in, axes_of(in));
  writer.output(out, axes_of(out));
  return writer.finish();
}

void share_vector_work(models::Operator& op, std::uint32_t parts) {
  op.work.forward /= parts;
  op.work.backward /= parts;
  if (op.work.duration.has_value()) *op.work.duration /= parts;
}

/// Samples are groups of products, or rows of one.
void share_product(models::Operator& op, std::uint32_t parts) {
  std::uint64_t rest = parts;
  for (std::uint64_t* const size : {&op.product.groups, &op.product.m, &op.product.n}) {
    const std::uint64_t common = std::gcd(*size, rest);
    *size /= common;
    rest /= common;
  }
}

}  // namespace

std::span<const OperatorRule> general_rules() {
  static const std::vector<OperatorRule> rules{
      {.kind = OperatorKind::reshape, .signature = reshape_signature},
      {.kind = OperatorKind::vector, .signature = general_signature, .share = share_vector_work},
      {.kind = OperatorKind::product, .signature = general_signature, .share = share_product},
  };
  return rules;
}

}  // namespace hcclsim::hccl
