#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

/// Operators that treat every element by itself: any axis can be cut, all operands alike.
namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;

/// A dimension for each axis of a tensor.
std::vector<std::size_t> all_axes(SignatureWriter& writer, const WholeGraph& whole, OperatorId id) {
  const models::Shape view = whole.view(id);
  const std::uint32_t samples = whole.samples_of_rows(id);
  if (samples > 0) {
    std::vector<std::size_t> axes = writer.places(view, samples);
    axes.push_back(writer.dimension("features"));
    return axes;
  }
  if (view.rank() == 4) {
    return {writer.dimension("batch"), writer.dimension("channels"), writer.dimension("height"),
            writer.dimension("width")};
  }
  std::vector<std::size_t> axes = writer.rows(view);
  axes.push_back(writer.dimension("features"));
  return axes;
}

Signature elementwise_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Shape view = whole.view(id);
  const std::vector<std::size_t> axes = all_axes(writer, whole, id);
  for (std::size_t i = 0; i < whole.op(id).inputs.size(); ++i) writer.input(view, axes);
  // A bias is as long as the second axis of an image, and as the last one of features.
  if (!whole.op(id).parameters.empty()) {
    writer.parameter(parameter_shape(whole, id, 0), {view.rank() == 4 ? axes[1] : axes.back()});
  }
  writer.output(view, axes);
  return writer.finish();
}

/// A sequence is cut by positions, whose angles follow from their places; features in heads.
Signature rotary_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Shape view = whole.view(id);
  std::vector<std::size_t> axes = writer.rows(view);
  axes.push_back(writer.dimension("heads", whole.op(id).heads));
  writer.input(view, axes);
  writer.output(view, axes);
  return writer.finish();
}

/// Along the axis that is cut or joined, every device has all.
Signature copying_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const models::Shape view = whole.view(id);
  std::vector<std::size_t> axes = all_axes(writer, whole, id);
  // The axes behind the rows of sequences are one further in the view.
  const std::size_t behind = view.rank() > op.shape().rank() ? 1 : 0;
  const std::size_t processed = op.axis + behind;
  for (std::size_t axis = op.axis == 0 ? 0 : processed; axis <= processed; ++axis) {
    writer.signature().dimensions[axes[axis]].whole = "it is cut into parts or joined along this axis";
  }
  for (const models::Value input : op.inputs) writer.input(whole.view(input), axes);
  for (std::uint32_t output = 0; output < op.outputs.size(); ++output) {
    writer.output(whole.view(models::Value(id, output)), axes);
  }
  return writer.finish();
}

}  // namespace

std::span<const OperatorRule> elementwise_rules() {
  static const std::vector<OperatorRule> rules{
      {.kind = OperatorKind::relu, .signature = elementwise_signature},
      {.kind = OperatorKind::relu6, .signature = elementwise_signature},
      {.kind = OperatorKind::gelu, .signature = elementwise_signature},
      {.kind = OperatorKind::tanh, .signature = elementwise_signature},
      {.kind = OperatorKind::swiglu, .signature = elementwise_signature},
      {.kind = OperatorKind::add, .signature = elementwise_signature},
      {.kind = OperatorKind::bias, .signature = elementwise_signature},
      {.kind = OperatorKind::dropout, .signature = elementwise_signature},
      {.kind = OperatorKind::rotary, .signature = rotary_signature, .group = {"positions"}},
      {.kind = OperatorKind::split, .signature = copying_signature},
      {.kind = OperatorKind::concat, .signature = copying_signature},
  };
  return rules;
}

}  // namespace hcclsim::hccl
