#include <array>
#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

/// Routing and experts. The rows of experts have a part for each part of the samples: a device dispatches rows of its
/// own samples to the places that are its own.
namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;
using models::Shape;

constexpr std::string_view order_reason = "rows of a sequence take the places of experts one after the other";
constexpr std::string_view gates_reason = "a row chooses among all experts";

/// Dimensions of rows that stay whole sequences.
std::vector<std::size_t> whole_sequences(SignatureWriter& writer, const Shape& view) {
  std::vector<std::size_t> axes{writer.dimension("batch", view.size(0))};
  if (view.rank() == 3) axes.push_back(writer.whole("positions", order_reason));
  return axes;
}

Signature route_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const Shape view = whole.view(id);
  const std::vector<std::size_t> axes = joined(whole_sequences(writer, view), writer.whole("experts", gates_reason));
  writer.input(view, axes);
  writer.output(view, axes);
  return writer.finish();
}

/// Of dispatch and combine: `rows` here, experts × places × features there.
struct ExchangeAxes {
  ExchangeAxes(SignatureWriter& writer, const Shape& rows)
      : of_rows(whole_sequences(writer, rows)),
        experts(writer.whole("experts", gates_reason)),
        features(writer.dimension("features")) {}

  [[nodiscard]] std::vector<std::size_t> rows() const { return joined(of_rows, features); }
  [[nodiscard]] std::vector<std::size_t> gates() const { return joined(of_rows, experts); }
  [[nodiscard]] std::vector<std::size_t> places() const { return {experts, of_rows.front(), features}; }

  std::vector<std::size_t> of_rows;
  std::size_t experts;
  std::size_t features;
};

Signature dispatch_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const Shape rows = whole.view(op.inputs[0]);
  const ExchangeAxes axes(writer, rows);
  writer.input(rows, axes.rows());
  writer.input(whole.view(op.inputs[1]), axes.gates());
  writer.output(op.shape(), axes.places());
  return writer.finish();
}

Signature combine_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const Shape rows = whole.view(id);
  const ExchangeAxes axes(writer, rows);
  writer.input(whole.view(op.inputs[0]), axes.places());
  writer.input(whole.view(op.inputs[1]), axes.gates());
  writer.output(rows, axes.rows());
  return writer.finish();
}

Signature expert_linear_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const std::size_t experts = writer.dimension("experts");
  const std::size_t batch = writer.dimension("batch", whole.samples_of_rows(op.inputs.front()));
  const std::size_t inputs = writer.summed("inputs");
  const std::size_t outputs = writer.dimension("outputs");
  writer.input(whole.view(op.inputs.front()), {experts, batch, inputs});
  writer.parameter(parameter_shape(whole, id, 0), {experts, outputs, inputs});
  writer.output(op.shape(), {experts, batch, outputs});
  return writer.finish();
}

/// All heads are given the same features.
Signature join_heads_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const Shape out = whole.view(id);
  const std::vector<std::size_t> rows = writer.rows(out);
  const std::size_t heads = writer.dimension("heads", op.heads);
  const std::size_t shared = writer.whole("shared", "all heads are given all of these features");
  writer.input(whole.view(op.inputs[0]), joined(rows, heads));
  writer.input(whole.view(op.inputs[1]), joined(rows, shared));
  writer.output(out, joined(rows, heads));
  return writer.finish();
}

}  // namespace

std::span<const OperatorRule> expert_rules() {
  static const std::array<OperatorRule, 5> rules{
      {{.kind = OperatorKind::route, .signature = route_signature},
       {.kind = OperatorKind::dispatch, .signature = dispatch_signature},
       {.kind = OperatorKind::expert_linear, .signature = expert_linear_signature, .takes_output = true},
       {.kind = OperatorKind::combine, .signature = combine_signature},
       {.kind = OperatorKind::join_heads, .signature = join_heads_signature}}};
  return rules;
}

}  // namespace hcclsim::hccl
