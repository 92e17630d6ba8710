#pragma once

#include <vector>

#include "models/step_writer.hpp"

/// What the forward and the backward half of lower() share: which operators run in one kernel, the tensors that the
/// forward pass leaves for the backward pass, and the gradients gathered so far.
namespace hcclsim::models {

inline constexpr OperatorId no_operator = std::numeric_limits<OperatorId>::max();

/// Element operations per element of batch norm's four kernels; 7 forward and 11 backward together.
namespace batch_norm_work {
inline constexpr std::uint64_t reduce = 3;  // sum, square, sum of squares
inline constexpr std::uint64_t update = 4;  // subtract mean, scale, gamma, beta
inline constexpr std::uint64_t reduce_gradient = 5;
inline constexpr std::uint64_t apply_gradient = 6;
}  // namespace batch_norm_work

struct LoweringState {
  LoweringState(const Graph& the_graph, const LoweringOptions& the_options);

  const Graph& graph;
  LoweringOptions options;
  DataType activation;
  DataType master;
  std::vector<std::uint32_t> consumers;  ///< per operator
  std::vector<bool> needs_gradient;      ///< per operator
  StepWriter writer;

  // Tensors per operator; no_tensor where there is none.
  std::vector<TensorId> value;       ///< its output
  std::vector<TensorId> mask;        ///< bits that the backward pass needs: ReLU, dropout, max_pool
  std::vector<TensorId> statistics;  ///< batch norm: mean and variance per channel, fp32
  std::vector<TensorId> gradient;    ///< gradient of its output, as far as its consumers have contributed
  std::vector<std::uint32_t> pending_contributions;  ///< consumers that have not contributed yet

  [[nodiscard]] bool fuses() const { return options.fusion == Fusion::full; }
  [[nodiscard]] Bytes activation_bytes(const Shape& shape) const { return shape.elements() * size_of(activation); }
  [[nodiscard]] const Parameter& weight(const Operator& op) const { return graph.parameters[op.parameters[0]]; }
  /// Bytes of the weight of a convolution or linear operator as the cube reads it.
  [[nodiscard]] Bytes weight_bytes(const Operator& op) const { return weight(op).elements * size_of(activation); }
  /// Bytes of all parameters of an operator but a cube's weight: bias, gamma and beta, as the optimizer keeps them.
  [[nodiscard]] Bytes vector_parameter_bytes(const Operator& op) const;

  /// Lets the kernel last launched write the gradient of the output of `to`. With fusion it also adds earlier
  /// contributions and, if it is the last one and `to` a ReLU, applies the mask: then the gradient of the ReLU's input
  /// is what is written. Without fusion an addition is a kernel of its own.
  void contribute(OperatorId to);
  /// Hands the finished gradient `tensor` on to the output of `to` without a kernel, unless it must be added.
  void contribute_unchanged(OperatorId to, TensorId tensor);

 private:
  void launch_accumulation(OperatorId to, TensorId share);
};

[[nodiscard]] constexpr bool is_relu(OperatorKind kind) {
  return kind == OperatorKind::relu || kind == OperatorKind::relu6;
}
[[nodiscard]] constexpr bool is_cube(OperatorKind kind) {
  return kind == OperatorKind::convolution || kind == OperatorKind::linear;
}
[[nodiscard]] constexpr KernelClass kernel_class(OperatorKind kind) {
  if (kind == OperatorKind::convolution) return KernelClass::convolution;
  return kind == OperatorKind::linear ? KernelClass::matmul : KernelClass::vector;
}
[[nodiscard]] constexpr Bytes bytes_of_bits(std::uint64_t bits) { return (bits + 7) / 8; }

/// Whether average pooling keeps every pixel, so that no kernel is launched.
[[nodiscard]] bool is_identity(const Graph& graph, const Operator& op);

/// Writes the kernels of the forward pass, the loss (which also writes the gradient of the logits) included.
void lower_forward(LoweringState& state);
/// Writes the kernels of the backward pass and the gradients of the parameters.
void lower_backward(LoweringState& state);

}  // namespace hcclsim::models
