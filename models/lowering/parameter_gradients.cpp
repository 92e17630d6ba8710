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
  const Bytes bytes = elements * size_of(state_.gradient_types(parameter).produced);
  writer_.vector_work(1, elements);
  writer_.read_bytes(2 * bytes);
  writer_.write_bytes(bytes);
  finish({parameter});
}

void ParameterGradients::write(std::span<const std::uint32_t> parameters) {
  for (const std::uint32_t parameter : parameters) {
    if (state_.graph.parameters[parameter].frozen) continue;
    const DataType type = state_.gradient_types(parameter).produced;
    const Bytes bytes = state_.graph.parameters[parameter].elements * size_of(type);
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
void ParameterGradients::accumulate(std::uint32_t index, std::uint64_t elements) {
  const DataType type = state_.gradient_types(index).produced;
  writer_.launch(state_.graph.parameters[index].name, "accumulate", Phase::backward, KernelClass::vector, type);
  writer_.vector_work(1, elements);
  const Bytes bytes = elements * size_of(type);
  writer_.read_part(fresh_[index], bytes);
  writer_.read_bytes(bytes);
  writer_.write_bytes(bytes);
}

void ParameterGradients::finish(std::initializer_list<std::uint32_t> parameters) {
  for (const std::uint32_t index : parameters) {
    const Parameter& parameter = state_.graph.parameters[index];
    if (parameter.frozen) continue;
    const std::uint32_t pending = --state_.pending_gradients[index];
    const bool local = pending == (state_.shared[index] ? 1U : 0U);
    const std::uint32_t shards = state_.options.sharding.shards_of(index);
    const bool in_parts = state_.sums_parts(index);
    const LoweringState::GradientTypes types = state_.gradient_types(index);
    std::uint32_t complete = writer_.kernel_index();
    if (local && state_.options.accumulate) {
      accumulate(index, in_parts ? (parameter.elements + shards - 1) / shards : parameter.elements);
      if (!in_parts) complete = writer_.kernel_index();
    }
    if (pending > 0) continue;
    if (state_.received[index]) continue;  // goes back to its owner
    if (types.communicated != types.produced) {
      writer_.launch(parameter.name, "gradient_cast", Phase::backward, KernelClass::vector, state_.master).launched =
          in_parts ? Launched::always : Launched::with_last;
      writer_.vector_work(1, parameter.elements);
      writer_.read_bytes(parameter.elements * size_of(types.produced));
      writer_.write_bytes(parameter.elements * size_of(types.communicated));
      complete = writer_.kernel_index();
    }
    writer_.program().gradients.push_back({.name = parameter.name,
                                           .parameter = index,
                                           .elements = parameter.elements,
                                           .dtype = types.communicated,
                                           .kernel = complete,
                                           .cast_back = types.cast_back,
                                           .rows = parameter.shape.size() > 1 ? parameter.shape.front() : 0});
  }
}

}  // namespace hcclsim::models
