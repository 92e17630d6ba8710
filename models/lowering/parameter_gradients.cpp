#include "models/lowering/parameter_gradients.hpp"

namespace hcclsim::models {

ParameterGradients::ParameterGradients(LoweringState& state)
    : state_(state),
      writer_(state.writer),
      begun_(state.graph.parameters.size(), false),
      fresh_(state.graph.parameters.size(), no_tensor) {}

void ParameterGradients::exchange(const Operator& op, OperatorKind kind) {
  const std::uint32_t parameter = op.parameters.front();
  state_.launch_parameter(op, "gradient", Phase::backward, kind).launched = Launched::with_last;
  if (op.kind == OperatorKind::receive) return;
  writer_.launch(op.name, "add_gradient", Phase::backward, KernelClass::vector, state_.master).launched =
      Launched::with_last;
  const std::uint64_t elements = state_.graph.parameters[parameter].elements;
  writer_.vector_work(1, elements);
  writer_.read_bytes(2 * elements * size_of(state_.produced));
  writer_.write_bytes(elements * size_of(state_.produced));
  finish({parameter});
}

void ParameterGradients::write(std::span<const std::uint32_t> parameters) {
  for (const std::uint32_t parameter : parameters) {
    const Bytes bytes = state_.graph.parameters[parameter].elements * size_of(state_.produced);
    TensorId& fresh = fresh_[parameter];
    if (begun_[parameter]) {
      if (fresh == no_tensor) {
        writer_.read_bytes(bytes);
      } else {
        writer_.read(fresh);
      }
      writer_.vector_work(1, state_.graph.parameters[parameter].elements);
      writer_.fused("add");
    }
    begun_[parameter] = true;
    if (state_.options.accumulate) {
      fresh = writer_.write(bytes);
    } else {
      writer_.write_bytes(bytes);
    }
  }
}

/// Adds the micro-batch's gradient, or the part of it that the rank keeps, to the sum over micro-batches.
void ParameterGradients::accumulate(const Parameter& parameter, TensorId fresh, std::uint64_t elements) {
  writer_.launch(parameter.name, "accumulate", Phase::backward, KernelClass::vector, state_.produced);
  writer_.vector_work(1, elements);
  const Bytes bytes = elements * size_of(state_.produced);
  writer_.read_part(fresh, bytes);
  writer_.read_bytes(bytes);
  writer_.write_bytes(bytes);
}

void ParameterGradients::finish(std::initializer_list<std::uint32_t> parameters) {
  const DataType dtype = state_.options.communication.value_or(state_.produced);
  for (const std::uint32_t index : parameters) {
    const Parameter& parameter = state_.graph.parameters[index];
    const std::uint32_t pending = --state_.pending_gradients[index];
    const bool local = pending == (state_.shared[index] ? 1U : 0U);
    const std::uint32_t shards = state_.options.sharding.shards_of(index);
    const bool in_parts = state_.sums_parts(index);
    std::uint32_t complete = writer_.kernel_index();
    if (local && state_.options.accumulate) {
      accumulate(parameter, fresh_[index], in_parts ? (parameter.elements + shards - 1) / shards : parameter.elements);
      if (!in_parts) complete = writer_.kernel_index();
    }
    if (pending > 0) continue;
    if (state_.received[index]) continue;  // goes back to its owner
    if (dtype != state_.produced) {
      writer_.launch(parameter.name, "gradient_cast", Phase::backward, KernelClass::vector, state_.master).launched =
          in_parts ? Launched::always : Launched::with_last;
      writer_.vector_work(1, parameter.elements);
      writer_.read_bytes(parameter.elements * size_of(state_.produced));
      writer_.write_bytes(parameter.elements * size_of(dtype));
      complete = writer_.kernel_index();
    }
    writer_.program().gradients.push_back({.name = parameter.name,
                                           .parameter = index,
                                           .elements = parameter.elements,
                                           .dtype = dtype,
                                           .kernel = complete});
  }
}

}  // namespace hcclsim::models
