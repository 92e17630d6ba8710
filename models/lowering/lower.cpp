#include "models/lowering/lower.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "models/lowering/state.hpp"

namespace hcclsim::models {
namespace {

constexpr std::array<std::string_view, 2> fusion_names{"full", "none"};

}  // namespace

std::string_view name_of(Fusion fusion) { return fusion_names[static_cast<std::size_t>(fusion)]; }

Fusion parse_fusion(std::string_view name) {
  for (std::size_t i = 0; i < fusion_names.size(); ++i) {
    if (fusion_names[i] == name) return static_cast<Fusion>(i);
  }
  bad_input("option", "unknown fusion level '{}'; use full or none", name);
}

LoweringState::LoweringState(const Graph& the_graph, const LoweringOptions& the_options)
    : graph(the_graph),
      options(the_options),
      activation(activation_type(the_options.amp)),
      master(master_type(the_options.amp)),
      consumers(the_graph.consumer_counts()),
      needs_gradient(the_graph.needs_gradient()),
      value(the_graph.operators.size(), no_tensor),
      mask(value),
      statistics(value),
      probabilities(value),
      gradient(value),
      pending_contributions(consumers) {
  // ResNet50 has 541 kernels with its update; room for all saves moving them.
  writer.step().kernels.reserve(graph.operators.size() * 4);
  writer.step().live_tensors.reserve(graph.operators.size() * 4);
}

Bytes LoweringState::vector_parameter_bytes(const Operator& op) const {
  Bytes bytes = 0;
  for (std::size_t i = is_cube(op.kind) ? 1 : 0; i < op.parameters.size(); ++i) {
    bytes += graph.parameters[op.parameters[i]].elements * size_of(master);
  }
  return bytes;
}

void LoweringState::launch_product(const Operator& op, std::string_view what, Phase phase, const CubeWork& work) {
  Kernel& kernel = writer.launch(op.name, what, phase, KernelClass::matmul, activation);
  kernel.cube = work;
  kernel.flops = 2 * static_cast<Flops>(work.m * work.n) * static_cast<Flops>(work.k * work.groups);
}

void LoweringState::contribute(OperatorId to) {
  const Operator& op = graph.operators[to];
  const Bytes bytes = activation_bytes(op.output);
  --pending_contributions[to];
  if (!fuses()) {
    const TensorId share = writer.write(bytes);
    if (gradient[to] == no_tensor) {
      gradient[to] = share;
    } else {
      launch_accumulation(to, share);
    }
    return;
  }
  if (gradient[to] != no_tensor) {
    writer.read(gradient[to]);
    writer.vector_work(1, op.output.elements());
    writer.fused("add");
    gradient[to] = no_tensor;
  }
  if (is_relu(op.kind) && pending_contributions[to] == 0 && consumers[op.inputs.front()] == 1) {
    writer.read(mask[to]);
    writer.vector_work(1, op.output.elements());
    writer.fused("mask");
    --pending_contributions[op.inputs.front()];
    gradient[op.inputs.front()] = writer.write(bytes);
  } else {
    gradient[to] = writer.write(bytes);
  }
}

void LoweringState::contribute_unchanged(OperatorId to, TensorId tensor) {
  if (!needs_gradient[to]) return;
  --pending_contributions[to];
  if (gradient[to] == no_tensor) {
    gradient[to] = tensor;
  } else {
    launch_accumulation(to, tensor);
  }
}

void LoweringState::launch_accumulation(OperatorId to, TensorId share) {
  const Operator& op = graph.operators[to];
  writer.launch(op.name, "accumulate_gradient", Phase::backward, KernelClass::vector, activation);
  writer.vector_work(1, op.output.elements());
  writer.read(share);
  writer.read(gradient[to]);
  gradient[to] = writer.write(activation_bytes(op.output));
}

bool is_identity(const Graph& graph, const Operator& op) {
  if (op.kind == OperatorKind::dropout) return op.drop_rate == 0;
  return op.kind == OperatorKind::average_pool && graph.input_of(op) == op.output;
}

Step lower(const Graph& graph, const LoweringOptions& options) {
  LoweringState state(graph, options);
  lower_forward(state);
  lower_backward(state);
  Step& step = state.writer.step();
  step.weights = graph.parameter_elements() * size_of(state.master);
  return std::move(step);
}

std::vector<Bytes> live_bytes(const Step& step) {
  std::vector<Bytes> starts(step.kernels.size(), 0);
  std::vector<Bytes> ends(step.kernels.size(), 0);
  for (const LiveTensor& tensor : step.live_tensors) {
    starts[tensor.first_kernel] += tensor.bytes;
    ends[tensor.last_kernel] += tensor.bytes;
  }
  std::vector<Bytes> bytes;
  bytes.reserve(starts.size());
  Bytes live = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    live += starts[i];
    bytes.push_back(live);
    live -= ends[i];
  }
  return bytes;
}

Bytes peak_live_bytes(const Step& step) {
  const std::vector<Bytes> bytes = live_bytes(step);
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace hcclsim::models
