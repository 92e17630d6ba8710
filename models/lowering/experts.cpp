#include "models/lowering/state.hpp"

// Backward kernels of the operators around experts.
namespace hcclsim::models {
namespace {

ProgramWriter& launch_gradient(LoweringState& state, const Operator& op, TensorId dy) {
  state.writer.launch(op.name, "gradient", Phase::backward, KernelClass::vector, state.activation);
  state.writer.vector_work(1, static_cast<std::uint64_t>(backward_flops(state.graph, op, true)));
  state.writer.read(dy);
  return state.writer;
}

}  // namespace

void differentiate_route(LoweringState& state, OperatorId id, TensorId dy) {
  const Operator& op = state.graph.operators[id];
  if (!state.needs_gradient[op.inputs.front().op]) return;
  ProgramWriter& writer = launch_gradient(state, op, dy);
  writer.read(state.value_of(id));
  writer.read(state.statistics[id]);
  state.contribute(op.inputs.front());
}

void differentiate_dispatch(LoweringState& state, OperatorId id, TensorId dy) {
  const Operator& op = state.graph.operators[id];
  if (!state.needs_gradient[op.inputs.front().op]) return;
  launch_gradient(state, op, dy).read(state.value_of(op.inputs[1]));
  state.contribute(op.inputs.front());
}

void differentiate_combine(LoweringState& state, const Operator& op, TensorId dy) {
  ProgramWriter& writer = launch_gradient(state, op, dy);
  for (const Value operand : op.inputs) writer.read(state.value_of(operand));
  state.contribute_each(op);
}

}  // namespace hcclsim::models
