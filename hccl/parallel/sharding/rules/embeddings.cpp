#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

/// Rows of tables.
namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;

/// A device that has a part of the table's rows gives zeros for tokens of others: the sum over the devices is whole.
Signature token_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Shape out = whole.view(id);
  const models::Shape tokens = whole.view(whole.op(id).inputs.front());
  const std::size_t batch = writer.dimension("batch");
  const std::size_t positions = writer.dimension("positions");
  const std::size_t vocabulary = writer.summed("vocabulary");
  const std::size_t features = writer.dimension("features");
  writer.input(tokens, {batch, positions});
  writer.parameter(parameter_shape(whole, id, 0), {vocabulary, features});
  if (out.rank() == 3) {
    writer.output(out, {batch, positions, features});
  } else {
    writer.output(out, {batch, features});
  }
  writer.signature().parameters_first = true;
  return writer.finish();
}

/// Rows of positions or of segments, added to every sequence; or, for tokens, alone.
Signature position_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const models::Value from = whole.op(id).inputs.front();
  const models::Shape view = whole.view(id);
  const bool looks_up = whole.op(from.op).kind == OperatorKind::input;
  const std::vector<std::size_t> rows = writer.rows(view);
  const std::size_t table = writer.whole("table", "each device uses the rows of its positions of a whole table");
  const std::size_t features = writer.dimension("features");
  writer.input(whole.view(from), looks_up ? rows : joined(rows, features));
  writer.parameter(parameter_shape(whole, id, 0), {table, features});
  writer.output(view, joined(rows, features));
  writer.signature().parameters_first = true;
  return writer.finish();
}

/// A row in front of every sequence.
Signature class_token_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const std::size_t batch = writer.dimension("batch");
  const std::size_t positions = writer.whole("positions", "a row is put in front of every sequence");
  const std::size_t row = writer.whole("rows", "there is one row");
  const std::size_t features = writer.dimension("features");
  writer.input(whole.view(whole.op(id).inputs.front()), {batch, positions, features});
  writer.parameter(parameter_shape(whole, id, 0), {row, features});
  writer.output(whole.view(id), {batch, positions, features});
  writer.signature().parameters_first = true;
  return writer.finish();
}

}  // namespace

std::span<const OperatorRule> embedding_rules() {
  static const std::vector<OperatorRule> rules{
      {.kind = OperatorKind::token_embedding,
       .signature = token_signature,
       .group = {"vocabulary"},
       .takes_output = true},
      {.kind = OperatorKind::position_embedding, .signature = position_signature, .group = {"positions"}},
      {.kind = OperatorKind::segment_embedding, .signature = position_signature, .group = {"positions"}},
      {.kind = OperatorKind::class_token, .signature = class_token_signature},
  };
  return rules;
}

}  // namespace hcclsim::hccl
