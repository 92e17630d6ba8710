#include "models/lowering/general.hpp"

#include <algorithm>

namespace hcclsim::models {
namespace {

/// The backward pass of an operator whose forward pass has a given duration: as of products, twice of it.
constexpr double backward_per_forward = 2;

Bytes weight_bytes_of_product(const LoweringState& state, const Operator& op) {
  return state.weight(op).elements * size_of(state.used_as(op.parameters.front()));
}

}  // namespace

void launch_general(LoweringState& state, OperatorId id, Phase phase) {
  const Operator& op = state.graph.operators[id];
  ProgramWriter& writer = state.writer;
  Kernel& kernel = writer.launch(op.name, "forward", phase, KernelClass::vector, state.activation);
  if (op.work.duration.has_value()) kernel.duration = *op.work.duration;
  writer.vector_work(1, op.work.forward);
  for (const Value operand : op.inputs) writer.read(state.value_of(operand));
  for (const std::uint32_t parameter : op.parameters) {
    writer.read_bytes(state.graph.parameters[parameter].elements * size_of(state.used_as(parameter)));
  }
}

void differentiate_general(LoweringState& state, ParameterGradients& gradients, OperatorId id, TensorId dy) {
  const Operator& op = state.graph.operators[id];
  const bool wanted = std::ranges::any_of(op.inputs, [&](Value input) { return state.needs_gradient[input.op]; });
  if (dy == no_tensor || (!wanted && op.parameters.empty())) return;
  ProgramWriter& writer = state.writer;
  Kernel& kernel = writer.launch(op.name, "gradient", Phase::backward, KernelClass::vector, state.activation);
  if (op.work.duration.has_value()) kernel.duration = backward_per_forward * *op.work.duration;
  writer.vector_work(1, op.work.backward);
  writer.read(dy);
  if (op.work.keeps_inputs) {
    for (const Value operand : op.inputs) writer.read(state.value_of(operand));
  }
  if (op.work.keeps_output) writer.read(state.value_of(id));
  for (const std::uint32_t parameter : op.parameters) writer.use(parameter);
  gradients.write(op.parameters);
  state.contribute_each(op);
  for (const std::uint32_t parameter : op.parameters) gradients.finish({parameter});
}

void launch_matrix_product(LoweringState& state, OperatorId id, Phase phase) {
  const Operator& op = state.graph.operators[id];
  const MatrixProduct& size = op.product;
  state.launch_product(op, "forward", phase, {.m = size.m, .n = size.n, .k = size.k, .groups = size.groups});
  for (const Value operand : op.inputs) state.writer.read(state.value_of(operand));
  if (!op.parameters.empty()) state.writer.read_bytes(weight_bytes_of_product(state, op));
}

void differentiate_matrix_product(LoweringState& state, ParameterGradients& gradients, const Operator& op,
                                  TensorId dy) {
  ProgramWriter& writer = state.writer;
  const MatrixProduct& size = op.product;
  const bool weighted = !op.parameters.empty();
  const CubeWork of_left{.m = size.m, .n = size.k, .k = size.n, .groups = size.groups};
  const CubeWork of_right{.m = size.k, .n = size.n, .k = size.m, .groups = size.groups, .split_k = weighted};
  const auto wanted = [&](std::size_t input) {
    return input < op.inputs.size() && state.needs_gradient[op.inputs[input].op];
  };
  if (weighted && state.graph.trains(op)) {
    state.launch_product(op, "weight_gradient", Phase::backward, of_right);
    writer.read(dy);
    writer.read(state.value_of(op.inputs[0]));
    gradients.write(op.parameters);
    gradients.finish({op.parameters.front()});
  } else if (!weighted && wanted(1)) {
    state.launch_product(op, "right_gradient", Phase::backward, of_right);
    writer.read(dy);
    writer.read(state.value_of(op.inputs[0]));
    state.contribute(op.inputs[1]);
  }
  if (!wanted(0)) return;
  state.launch_product(op, weighted ? "data_gradient" : "left_gradient", Phase::backward, of_left);
  writer.read(dy);
  if (weighted) {
    writer.read_bytes(weight_bytes_of_product(state, op));
    writer.use(op.parameters.front());
  } else if (op.inputs.size() > 1) {
    writer.read(state.value_of(op.inputs[1]));
  }
  state.contribute(op.inputs[0]);
}

}  // namespace hcclsim::models
