#include <array>
#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;

/// Mean and variance are those of a whole row.
Signature row_norm_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Shape view = flat_view(whole, id);
  const std::vector<std::size_t> rows = writer.rows(view);
  const std::size_t features = writer.whole("features", "the features of a row are normalised together");
  writer.input(view, joined(rows, features));
  for (std::size_t i = 0; i < whole.op(id).parameters.size(); ++i) {
    writer.parameter(parameter_shape(whole, id, i), {features});
  }
  writer.output(view, joined(rows, features));
  return writer.finish();
}

/// The same of each head of a row, with one weight for all heads.
Signature head_norm_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Shape view = whole.view(id);
  std::vector<std::size_t> axes = writer.rows(view);
  axes.push_back(writer.dimension("heads", whole.op(id).heads));
  writer.input(view, axes);
  writer.parameter(parameter_shape(whole, id, 0),
                   {writer.whole("width", "the features of a head are normalised together")});
  writer.output(view, axes);
  return writer.finish();
}

Signature rms_norm_signature(const WholeGraph& whole, OperatorId id) {
  return whole.op(id).heads > 1 ? head_norm_signature(whole, id) : row_norm_signature(whole, id);
}

/// Statistics are those of a channel; where its samples or pixels are cut, of the group that shares it.
Signature batch_norm_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Shape view = whole.view(id);
  std::vector<std::size_t> axes{writer.dimension("batch"), writer.dimension("channels")};
  if (view.rank() == 4) axes.insert(axes.end(), {writer.dimension("height"), writer.dimension("width")});
  writer.input(view, axes);
  for (const std::size_t number : {0U, 1U}) writer.parameter(parameter_shape(whole, id, number), {axes[1]});
  writer.signature().further = {{axes[1]}, {axes[1]}};  // moving mean and variance
  writer.output(view, axes);
  return writer.finish();
}

}  // namespace

std::span<const OperatorRule> norm_rules() {
  static const std::vector<OperatorRule> rules{
      {.kind = OperatorKind::layer_norm, .signature = row_norm_signature},
      {.kind = OperatorKind::rms_norm, .signature = rms_norm_signature},
      {.kind = OperatorKind::batch_norm, .signature = batch_norm_signature, .group = {"batch", "height", "width"}},
  };
  return rules;
}

}  // namespace hcclsim::hccl
