#include <array>
#include <numeric>
#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

/// Linear operators and attention.
namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;
using models::Shape;

constexpr std::string_view blocks_reason = "queries, keys and values are each cut by heads";
constexpr std::uint32_t packed_blocks = 3;  // queries, keys, values

/// The last axis of a shape as blocks of equal size.
Shape in_blocks(const Shape& shape, std::size_t axis) {
  std::vector<std::uint32_t> sizes = shape.sizes();
  sizes[axis] /= packed_blocks;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), packed_blocks);
  return Shape(std::move(sizes));
}

/// Rows × inputs times inputs × outputs. What feeds an attention that reads one tensor makes blocks of three times as
/// many heads, and each block is cut.
Signature linear_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const Shape in = flat_view(whole, op.inputs.front());
  const Shape out = whole.view(id);
  const bool packed = whole.is_packed(id);
  const std::vector<std::size_t> rows = writer.rows(in);
  const std::size_t inputs = writer.summed("inputs");
  std::vector<std::size_t> outputs;
  if (packed) outputs.push_back(writer.whole("blocks", blocks_reason));
  outputs.push_back(writer.dimension("outputs"));

  writer.input(in, joined(rows, inputs));
  const auto blocks = [&](const Shape& shape, std::size_t axis) { return packed ? in_blocks(shape, axis) : shape; };
  writer.parameter(blocks(parameter_shape(whole, id, 0), 0), joined(outputs, inputs));
  if (op.parameters.size() > 1) writer.parameter(blocks(parameter_shape(whole, id, 1), 0), outputs);
  writer.signature().optional_parameters = op.parameters.size() - 1;
  std::vector<std::size_t> axes = rows;
  axes.insert(axes.end(), outputs.begin(), outputs.end());
  writer.output(blocks(out, out.rank() - 1), std::move(axes));
  return writer.finish();
}

/// Heads are computed apart from each other; queries meet the keys of all positions.
Signature attention_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const Shape out = whole.view(id);
  const std::vector<std::size_t> rows = writer.rows(out);
  const bool packed = op.inputs.size() == 1 && op.heads == op.kv_heads;
  std::vector<std::size_t> blocks = rows;
  if (packed) blocks.push_back(writer.whole("blocks", blocks_reason));
  const std::size_t heads =
      op.inputs.size() == 1 && !packed
          ? writer.whole("heads", "queries, keys and values of one tensor have as many heads each")
          : writer.dimension("heads", std::gcd(op.heads, op.kv_heads));
  for (const models::Value input : op.inputs) {
    const Shape view = whole.view(input);
    writer.input(packed ? in_blocks(view, view.rank() - 1) : view, joined(blocks, heads));
  }
  writer.output(out, joined(rows, heads));
  return writer.finish();
}

}  // namespace

std::span<const OperatorRule> product_rules() {
  static const std::array<OperatorRule, 2> rules{
      {{.kind = OperatorKind::linear, .signature = linear_signature, .takes_output = true},
       {.kind = OperatorKind::attention, .signature = attention_signature, .group = {"positions"}}}};
  return rules;
}

}  // namespace hcclsim::hccl
