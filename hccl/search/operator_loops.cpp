#include "hccl/search/operator_loops.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::Shape;
using models::Value;

/// Collects the axes and tensors of one operator.
class LoopBuilder {
 public:
  LoopBuilder(const Graph& graph, const Operator& op) : graph_(graph), op_(op) {}

  std::uint32_t axis(std::string_view name, std::uint32_t size, bool reduced = false) {
    loops_.axes.push_back({name, size, reduced});
    return static_cast<std::uint32_t>(loops_.axes.size() - 1);
  }
  /// Axes of the tensor that are not named are not cut.
  void input(std::size_t number, std::vector<std::uint32_t> axes) {
    const models::Tensor& tensor = graph_.tensor(op_.inputs.at(number));
    axes.resize(tensor.shape.rank(), not_cut);
    loops_.inputs.push_back({tensor, std::move(axes)});
    ++loops_.activations;
  }
  /// The next parameter of the operator, if there is one more.
  void parameter(std::vector<std::uint32_t> axes) {
    const std::size_t number = loops_.inputs.size() - loops_.activations;
    if (number >= op_.parameters.size()) return;
    const std::uint32_t index = op_.parameters[number];
    const models::Parameter& what = graph_.parameters[index];
    Shape shape;
    for (const std::uint32_t size : what.shape) shape = appended(shape, size);
    axes.resize(shape.rank(), not_cut);
    loops_.inputs.push_back({{shape, DataType::fp32}, std::move(axes), index});
  }
  void outputs(const std::vector<std::uint32_t>& axes) {
    for (const models::Tensor& tensor : op_.outputs) {
      std::vector<std::uint32_t> padded = axes;
      padded.resize(tensor.shape.rank(), not_cut);
      loops_.outputs.push_back({tensor, std::move(padded)});
    }
  }
  [[nodiscard]] OperatorLoops finish(Kept kept) && {
    loops_.kept = kept;
    return std::move(loops_);
  }

  [[nodiscard]] const Shape& in(std::size_t number = 0) const { return graph_.tensor(op_.inputs.at(number)).shape; }
  [[nodiscard]] const Operator& op() const { return op_; }

 private:
  static Shape appended(const Shape& shape, std::uint32_t size) {
    switch (shape.rank()) {
      case 0:
        return {size};
      case 1:
        return {shape.size(0), size};
      case 2:
        return {shape.size(0), shape.size(1), size};
      case 3:
        return {shape.size(0), shape.size(1), shape.size(2), size};
      default:
        internal_error("a parameter of more than four axes");
    }
  }

  const Graph& graph_;
  const Operator& op_;
  OperatorLoops loops_;
};

OperatorLoops convolution_loops(LoopBuilder builder) {
  const Operator& op = builder.op();
  const bool grouped = op.groups > 1;
  const std::uint32_t samples = builder.axis("samples", builder.in().batch());
  const std::uint32_t from = builder.axis("input channels", grouped ? 1 : builder.in().channels(), true);
  const std::uint32_t to = builder.axis("output channels", grouped ? 1 : op.shape().channels());
  builder.input(0, {samples, from});
  builder.parameter({to, from});
  builder.parameter({to});
  builder.outputs({samples, to});
  return std::move(builder).finish(Kept::inputs);
}

OperatorLoops linear_loops(LoopBuilder builder) {
  const std::uint32_t rows = builder.axis("rows", builder.in().batch());
  const std::uint32_t inner = builder.axis("input features", builder.in().channels(), true);
  const std::uint32_t outer = builder.axis("output features", builder.op().shape().channels());
  builder.input(0, {rows, inner});
  builder.parameter({outer, inner});
  builder.parameter({outer});
  builder.outputs({rows, outer});
  return std::move(builder).finish(Kept::inputs);
}

/// Operators that keep the first two axes of all their inputs, with parameters along the second one.
OperatorLoops channel_loops(LoopBuilder builder, Kept kept) {
  const bool image = builder.in().rank() > 2;
  const std::uint32_t first = builder.axis(image ? "samples" : "rows", builder.in().batch());
  const std::uint32_t second = builder.axis(image ? "channels" : "features", builder.in().channels());
  for (std::size_t i = 0; i < builder.op().inputs.size(); ++i) builder.input(i, {first, second});
  for (std::size_t i = 0; i < builder.op().parameters.size(); ++i) builder.parameter({second});
  builder.outputs({first, second});
  return std::move(builder).finish(kept);
}

OperatorLoops row_norm_loops(LoopBuilder builder) {
  const std::uint32_t rows = builder.axis("rows", builder.in().batch());
  builder.input(0, {rows});
  for (std::size_t i = 0; i < builder.op().parameters.size(); ++i) builder.parameter({});
  builder.outputs({rows});
  return std::move(builder).finish(Kept::inputs);
}

OperatorLoops lookup_loops(LoopBuilder builder) {
  const Operator& op = builder.op();
  const std::uint32_t sequences = builder.axis("sequences", builder.in().batch());
  const std::uint32_t rows = builder.axis("vocabulary", op.parameters.empty() ? 1 : 0, true);
  const std::uint32_t features = builder.axis("features", op.shape().channels());
  builder.input(0, {sequences});
  builder.parameter({rows, features});
  builder.outputs({sequences, features});
  OperatorLoops loops = std::move(builder).finish(Kept::inputs);
  loops.axes[rows].size = loops.inputs.back().tensor.shape.size(0);
  return loops;
}

/// Operators of whole sequences; `width`: parts that their features can be cut into, 1: they are not cut.
OperatorLoops sequence_loops(LoopBuilder builder, std::uint32_t sequences, std::string_view across,
                             std::uint32_t width, Kept kept) {
  const std::uint32_t first = builder.axis("sequences", sequences);
  const std::uint32_t second = width > 1 ? builder.axis(across, width) : not_cut;
  for (std::size_t i = 0; i < builder.op().inputs.size(); ++i) {
    const bool tokens = builder.op().inputs[i].op == 0;
    builder.input(i, {first, tokens ? not_cut : second});
  }
  for (std::size_t i = 0; i < builder.op().parameters.size(); ++i) {
    builder.parameter(builder.op().kind == models::OperatorKind::sum_rows ? std::vector{second}
                                                                          : std::vector{not_cut, second});
  }
  builder.outputs({first, second});
  return std::move(builder).finish(kept);
}

OperatorLoops loss_loops(LoopBuilder builder) {
  std::uint32_t common = 0;
  for (std::size_t i = 0; i < builder.op().inputs.size(); ++i) common = std::gcd(common, builder.in(i).batch());
  const std::uint32_t rows = builder.axis("rows", common);
  for (std::size_t i = 0; i < builder.op().inputs.size(); ++i) builder.input(i, {rows});
  builder.outputs({});
  return std::move(builder).finish(Kept::inputs);
}

/// Cutting and joining along an axis, which is not cut over devices.
OperatorLoops moved_loops(LoopBuilder builder) {
  std::vector<std::uint32_t> axes;
  const bool image = builder.in().rank() > 2;
  for (std::uint32_t axis = 0; axis < 2; ++axis) {
    const std::string_view name = axis == 0 ? (image ? "samples" : "rows") : (image ? "channels" : "features");
    axes.push_back(axis == builder.op().axis ? not_cut : builder.axis(name, builder.in().size(axis)));
  }
  for (std::size_t i = 0; i < builder.op().inputs.size(); ++i) builder.input(i, axes);
  builder.outputs(axes);
  return std::move(builder).finish(Kept::nothing);
}

/// Sequences of what an operator of sequences makes or reads.
std::uint32_t sequences_of(const Operator& op) { return op.shape().batch() / std::max(op.sequence, 1U); }

}  // namespace

std::optional<std::uint32_t> OperatorLoops::find(std::string_view name) const {
  const auto found = std::find_if(axes.begin(), axes.end(), [&](const LoopAxis& axis) { return axis.name == name; });
  if (found == axes.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - axes.begin());
}

std::uint64_t devices_used(const Cuts& cuts) {
  return std::accumulate(cuts.begin(), cuts.end(), std::uint64_t{1}, std::multiplies<>());
}

std::vector<std::uint32_t> cuts_of(const LoopTensor& tensor, const Cuts& cuts) {
  std::vector<std::uint32_t> parts;
  for (const std::uint32_t axis : tensor.axes) parts.push_back(axis == not_cut ? 1 : cuts.at(axis));
  return parts;
}

double slice_bytes(const LoopTensor& tensor, const Cuts& cuts) {
  double parts = 1;
  for (const std::uint32_t axis : tensor.axes) parts *= axis == not_cut ? 1 : cuts.at(axis);
  return static_cast<double>(tensor.tensor.shape.elements()) / parts * static_cast<double>(size_of(tensor.tensor.dtype));
}

OperatorLoops loops_of(const Graph& graph, models::OperatorId id) {
  using enum models::OperatorKind;
  const Operator& op = graph.operators.at(id);
  LoopBuilder builder(graph, op);
  switch (op.kind) {
    case input: {
      builder.outputs({builder.axis("samples", op.shape().batch())});
      return std::move(builder).finish(Kept::nothing);
    }
    case convolution:
      return convolution_loops(std::move(builder));
    case linear:
      return linear_loops(std::move(builder));
    case add:
    case dropout:
    case flatten:
    case patches:
      return channel_loops(std::move(builder), Kept::nothing);
    case relu:
    case relu6:
    case tanh:
      return channel_loops(std::move(builder), Kept::output);
    case batch_norm:
    case max_pool:
    case average_pool:
    case gelu:
    case swiglu:
      return channel_loops(std::move(builder), Kept::inputs);
    case layer_norm:
    case rms_norm:
      return row_norm_loops(std::move(builder));
    case token_embedding:
      return lookup_loops(std::move(builder));
    case position_embedding:
    case segment_embedding:
    case class_token:
    case select_rows:
      return sequence_loops(std::move(builder), sequences_of(op), "features", op.shape().channels(), Kept::nothing);
    case sum_rows:
      return sequence_loops(std::move(builder), op.shape().batch(), "features", op.shape().channels(), Kept::nothing);
    case rotary:
      return sequence_loops(std::move(builder), sequences_of(op), "heads", op.heads, Kept::nothing);
    case attention:
      return sequence_loops(std::move(builder), sequences_of(op), "heads", std::gcd(op.heads, op.kv_heads),
                            Kept::inputs);
    case join_rows:
      return sequence_loops(std::move(builder), op.shape().batch(), "features", 1, Kept::nothing);
    case factorization:
      return sequence_loops(std::move(builder), op.shape().batch(), "features", 1, Kept::inputs);
    case loss:
    case binary_loss:
      return loss_loops(std::move(builder));
    case split:
    case concat:
    case slice:
      return moved_loops(std::move(builder));
    default:
      bad_input("unsupported", "{}: a strategy search takes a network before it is cut, without '{}'", op.name,
                models::name_of(op.kind));
  }
}

std::string_view name_of(MindSporeKind kind) {
  using enum MindSporeKind;
  switch (kind) {
    case virtual_dataset:
      return "virtual dataset";
    case matmul:
      return "MatMul";
    case batch_matmul:
      return "BatchMatMul";
    case convolution:
      return "Conv2D";
    case pooling:
      return "pooling";
    case batch_norm:
      return "BatchNorm";
    case loss:
      return "loss";
    case elementwise:
      return "element-wise";
    case softmax:
      return "Softmax";
    case reduce:
      return "reduction";
    case gather:
      return "Gather";
    case layer_norm:
      return "LayerNorm";
    case reshape:
      return "Reshape";
    case slice:
      return "StridedSlice";
  }
  internal_error("no kind of MindSpore's operators: {}", static_cast<int>(kind));
}

bool is_eliminated(MindSporeKind kind) {
  using enum MindSporeKind;
  return kind != virtual_dataset && kind != matmul && kind != convolution && kind != pooling && kind != batch_norm &&
         kind != loss;
}

std::vector<MindSporeKind> mindspore_operators(const Operator& op) {
  using enum MindSporeKind;
  using Kind = models::OperatorKind;
  switch (op.kind) {
    case Kind::input:
      return {virtual_dataset};
    case Kind::convolution:
      return op.parameters.size() > 1 ? std::vector{convolution, elementwise} : std::vector{convolution};
    case Kind::linear:
      return op.parameters.size() > 1 ? std::vector{matmul, elementwise} : std::vector{matmul};
    case Kind::batch_norm:
      return {batch_norm};
    case Kind::max_pool:
      return {pooling};
    case Kind::average_pool:  // to one pixel MindSpore's networks take a ReduceMean
      return op.shape().image() == 1 ? std::vector{reduce} : std::vector{pooling};
    case Kind::relu:
    case Kind::relu6:
    case Kind::add:
    case Kind::dropout:
    case Kind::gelu:
    case Kind::tanh:
      return {elementwise};
    case Kind::swiglu:  // SiLU and a product
      return {elementwise, elementwise};
    case Kind::rotary:  // x · cos + turned x · sin
      return {elementwise, elementwise, elementwise};
    case Kind::layer_norm:
    case Kind::rms_norm:
      return {layer_norm};
    case Kind::token_embedding:
      return {gather};
    case Kind::position_embedding:
    case Kind::segment_embedding:
      return op.inputs.front().op == 0 ? std::vector{gather} : std::vector{gather, elementwise};
    case Kind::attention:
      return {batch_matmul, softmax, batch_matmul};
    case Kind::flatten:
    case Kind::patches:
    case Kind::join_rows:
      return {reshape};
    case Kind::sum_rows:
      return op.parameters.empty() ? std::vector{reduce} : std::vector{reduce, elementwise};
    case Kind::factorization:  // (Σv)², Σv², their difference, the sum over the features
      return {reduce, elementwise, elementwise, reduce, elementwise, reduce};
    case Kind::loss:
    case Kind::binary_loss:
      return {loss};
    default:  // class_token, select_rows, split, concat, slice
      return {slice};
  }
}

}  // namespace hcclsim::hccl
