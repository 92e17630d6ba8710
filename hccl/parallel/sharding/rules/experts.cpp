#include <array>
#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

/// Routing and experts. The rows of experts have a part for each part of the samples: a device dispatches rows of its
/// own samples to the places that are its own. Where experts have places for parts of sequences (Operator::of_parts)
/// they have one for each of these too.
namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;
using models::Shape;

constexpr std::string_view order_reason = "rows of a sequence take the places of experts one after the other";
constexpr std::string_view gates_reason = "a row chooses among all experts";

/// Dimensions of rows, which stay whole sequences where these take places in their order.
std::vector<std::size_t> rows_of_sequences(SignatureWriter& writer, const Shape& view, bool of_parts) {
  std::vector<std::size_t> axes{writer.dimension("batch", view.size(0))};
  if (view.rank() != 3) return axes;
  axes.push_back(of_parts ? writer.dimension("positions") : writer.whole("positions", order_reason));
  return axes;
}

Signature route_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const Shape view = whole.view(id);
  const std::vector<std::size_t> axes =
      joined(rows_of_sequences(writer, view, whole.op(id).of_parts), writer.whole("experts", gates_reason));
  writer.input(view, axes);
  writer.output(view, axes);
  return writer.finish();
}

/// Of dispatch and combine: `rows` here, experts × places × features there, as `of_experts` has them.
struct ExchangeAxes {
  ExchangeAxes(SignatureWriter& writer, const Shape& rows, const Shape& of_experts)
      : of_rows(rows_of_sequences(writer, rows, of_experts.rank() == 4)),
        experts(writer.whole("experts", gates_reason)),
        features(writer.dimension("features")) {}

  [[nodiscard]] std::vector<std::size_t> rows() const { return joined(of_rows, features); }
  [[nodiscard]] std::vector<std::size_t> gates() const { return joined(of_rows, experts); }
  [[nodiscard]] std::vector<std::size_t> places(const Shape& of_experts) const {
    if (of_experts.rank() == 4) return {experts, of_rows[0], of_rows[1], features};
    return {experts, of_rows.front(), features};
  }

  std::vector<std::size_t> of_rows;
  std::size_t experts;
  std::size_t features;
};

Signature dispatch_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const Shape rows = whole.view(op.inputs[0]);
  const Shape made = whole.view(id);
  const ExchangeAxes axes(writer, rows, made);
  writer.input(rows, axes.rows());
  writer.input(whole.view(op.inputs[1]), axes.gates());
  writer.output(made, axes.places(made));
  return writer.finish();
}

Signature combine_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const Shape rows = whole.view(id);
  const Shape made = whole.view(op.inputs[0]);
  const ExchangeAxes axes(writer, rows, made);
  writer.input(made, axes.places(made));
  writer.input(whole.view(op.inputs[1]), axes.gates());
  writer.output(rows, axes.rows());
  return writer.finish();
}

Signature expert_linear_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const std::vector<std::size_t> places = writer.places(whole.view(id), whole.samples_of_rows(op.inputs.front()));
  const std::size_t inputs = writer.summed("inputs");
  const std::size_t outputs = writer.dimension("outputs");
  writer.input(whole.view(op.inputs.front()), joined(places, inputs));
  writer.parameter(parameter_shape(whole, id, 0), {places.front(), outputs, inputs});
  writer.output(whole.view(id), joined(places, outputs));
  return writer.finish();
}

/// Heads that are repeated stay beside each other.
Signature repeat_heads_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const Shape out = whole.view(id);
  const std::vector<std::size_t> rows = writer.rows(out);
  const std::size_t heads = writer.dimension("heads", op.kv_heads);
  writer.input(whole.view(op.inputs[0]), joined(rows, heads));
  writer.output(out, joined(rows, heads));
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
  static const std::array<OperatorRule, 6> rules{
      {{.kind = OperatorKind::route, .signature = route_signature},
       {.kind = OperatorKind::dispatch, .signature = dispatch_signature},
       {.kind = OperatorKind::expert_linear, .signature = expert_linear_signature, .takes_output = true},
       {.kind = OperatorKind::combine, .signature = combine_signature},
       {.kind = OperatorKind::repeat_heads, .signature = repeat_heads_signature},
       {.kind = OperatorKind::join_heads, .signature = join_heads_signature}}};
  return rules;
}

}  // namespace hcclsim::hccl
