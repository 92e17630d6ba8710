#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

/// Operators that make one row, or some, of the rows of every sequence.
namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;
using models::Shape;

Signature select_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const Shape in = whole.view(whole.op(id).inputs.front());
  const Shape out = whole.view(id);
  const std::size_t batch = writer.dimension("batch");
  const std::size_t positions = writer.whole("positions", "the first rows are those of a whole sequence");
  const std::size_t features = writer.dimension("features");
  const auto axes_of = [&](const Shape& view) {
    return view.rank() == 3 ? std::vector<std::size_t>{batch, positions, features}
                            : std::vector<std::size_t>{batch, features};
  };
  writer.input(in, axes_of(in));
  writer.output(out, axes_of(out));
  return writer.finish();
}

/// Rows of a sequence, as one row, vary slower than their features.
Signature join_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const Shape in = whole.view(whole.op(id).inputs.front());
  const std::size_t batch = writer.dimension("batch");
  const std::size_t positions = writer.dimension("positions", in.rank() == 3 ? in.size(1) : 1);
  const std::size_t features = writer.whole("features", "the features of a position stay together");
  writer.input(in, in.rank() == 3 ? std::vector<std::size_t>{batch, positions, features}
                                  : std::vector<std::size_t>{batch, features});
  writer.output(whole.view(id), {batch, in.rank() == 3 ? positions : features});
  return writer.finish();
}

/// A sum over the positions; a bias is added to the whole sum.
Signature sum_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const Shape in = whole.view(whole.op(id).inputs.front());
  const std::size_t batch = writer.dimension("batch");
  std::vector<std::size_t> axes{batch};
  if (in.rank() == 3) axes.push_back(writer.summed("positions"));
  const std::size_t features = writer.dimension("features");
  writer.input(in, joined(axes, features));
  if (!whole.op(id).parameters.empty()) writer.parameter(parameter_shape(whole, id, 0), {features});
  writer.signature().optional_parameters = whole.op(id).parameters.size();
  writer.output(whole.view(id), {batch, features});
  return writer.finish();
}

/// Squares of sums over the positions, added up over the features.
Signature factorization_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const Shape in = whole.view(whole.op(id).inputs.front());
  const std::size_t batch = writer.dimension("batch");
  std::vector<std::size_t> axes{batch};
  if (in.rank() == 3) axes.push_back(writer.whole("positions", "sums over the positions are squared"));
  const std::size_t features = writer.summed("features");
  const std::size_t one = writer.whole("result", "there is one number for each sample");
  writer.input(in, joined(axes, features));
  writer.output(whole.view(id), {batch, one});
  return writer.finish();
}

}  // namespace

std::span<const OperatorRule> row_rules() {
  static const std::vector<OperatorRule> rules{
      {.kind = OperatorKind::select_rows, .signature = select_signature},
      {.kind = OperatorKind::join_rows, .signature = join_signature},
      {.kind = OperatorKind::sum_rows, .signature = sum_signature},
      {.kind = OperatorKind::factorization, .signature = factorization_signature},
  };
  return rules;
}

}  // namespace hcclsim::hccl
