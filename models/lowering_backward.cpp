#include <string_view>

#include "models/backward_order.hpp"
#include "models/cube.hpp"
#include "models/lowering_state.hpp"

namespace hcclsim::models {
namespace {

using enum OperatorKind;

class BackwardPass {
 public:
  explicit BackwardPass(LoweringState& state) : state_(state), graph_(state.graph), writer_(state.writer) {
    writer_.step().gradients.reserve(graph_.parameters.size());
  }

  void run() {
    for (const OperatorId id : backward_order(graph_)) {
      if (state_.needs_gradient[id]) differentiate(id);
    }
  }

 private:
  void differentiate(OperatorId id) {
    const Operator& op = graph_.operators[id];
    const TensorId dy = state_.gradient[id];
    switch (op.kind) {
      case input:
      case loss:  // its kernel of the forward pass wrote the gradient of the logits
        return;
      case flatten:
        state_.contribute_unchanged(op.inputs.front(), dy);
        return;
      case add:
        for (const OperatorId operand : op.inputs) state_.contribute_unchanged(operand, dy);
        return;
      case convolution:
      case linear:
        differentiate_cube(op, dy);
        return;
      case batch_norm:
        differentiate_batch_norm(id, dy);
        return;
      case relu:
      case relu6:
        // Without a gradient of its own the mask was applied by the kernel that computed it.
        if (dy != no_tensor) launch_vector(id, dy, op.output.elements());
        return;
      case max_pool:
        launch_vector(id, dy, op.window.area() * op.output.elements());
        return;
      case average_pool:
        if (is_identity(graph_, op)) {
          state_.contribute_unchanged(op.inputs.front(), dy);
          return;
        }
        launch_vector(id, dy, static_cast<std::uint64_t>(forward_flops(graph_, op)));
        return;
      case gelu:
      case layer_norm:
      case token_embedding:
      case position_embedding:
      case attention:
      case dropout:
        launch_vector(id, dy, op.output.elements());
        return;
    }
  }

  void launch(const Operator& op, std::string_view what, DataType dtype) {
    writer_.launch(op.name, what, Phase::backward, kernel_class(op.kind), dtype);
  }

  /// Gradient of an operator without parameters: reads dy and its mask, if it has one.
  void launch_vector(OperatorId id, TensorId dy, std::uint64_t operations) {
    const Operator& op = graph_.operators[id];
    if (!state_.needs_gradient[op.inputs.front()]) return;
    launch(op, "gradient", state_.activation);
    writer_.vector_work(1, operations);
    writer_.read(dy);
    if (state_.mask[id] != no_tensor) writer_.read(state_.mask[id]);
    state_.contribute(op.inputs.front());
  }

  void differentiate_batch_norm(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    const OperatorId from = op.inputs.front();
    const Bytes parameters = state_.vector_parameter_bytes(op);
    const TensorId x = state_.value[from];

    launch(op, "reduce_gradient", state_.master);
    writer_.vector_work(batch_norm_work::reduce_gradient, op.output.elements());
    writer_.read(dy);
    writer_.read(x);
    writer_.read(state_.statistics[id]);
    writer_.write_bytes(parameters);
    finish_gradients({op.parameters[1], op.parameters[0]});
    if (!state_.needs_gradient[from]) return;

    launch(op, "apply_gradient", state_.master);
    writer_.vector_work(batch_norm_work::apply_gradient, op.output.elements());
    writer_.read(dy);
    writer_.read(x);
    writer_.read(state_.statistics[id]);
    // The gradients of gamma and beta, and gamma.
    writer_.read_bytes(parameters + parameters / 2);
    state_.contribute(from);
  }

  void differentiate_cube(const Operator& op, TensorId dy) {
    const OperatorId from = op.inputs.front();
    const Flops product = forward_flops(graph_, op);
    if (op.parameters.size() > 1) {
      writer_.launch(op.name, "bias_gradient", Phase::backward, KernelClass::vector, state_.master);
      writer_.vector_work(1, op.output.elements());
      writer_.read(dy);
      writer_.write_bytes(state_.vector_parameter_bytes(op));
      finish_gradients({op.parameters[1]});
    }
    launch(op, "weight_gradient", state_.activation);
    writer_.kernel().cube = weight_gradient_work(graph_, op);
    writer_.kernel().flops = product;
    writer_.read(dy);
    writer_.read(state_.value[from]);
    writer_.write_bytes(state_.weight(op).elements * size_of(state_.master));
    finish_gradients({op.parameters[0]});
    if (!state_.needs_gradient[from]) return;

    launch(op, "data_gradient", state_.activation);
    writer_.kernel().cube = data_gradient_work(graph_, op);
    writer_.kernel().flops = product;
    writer_.read(dy);
    writer_.read_bytes(state_.weight_bytes(op));
    state_.contribute(from);
  }

  /// The kernel last launched has written the gradients of these parameters, in production order. Casts them if they
  /// are communicated in another type.
  void finish_gradients(std::initializer_list<std::uint32_t> parameters) {
    const DataType dtype = state_.options.communication.value_or(state_.master);
    for (const std::uint32_t index : parameters) {
      const Parameter& parameter = graph_.parameters[index];
      if (dtype != state_.master) {
        writer_.launch(parameter.name, "gradient_cast", Phase::backward, KernelClass::vector, state_.master);
        writer_.vector_work(1, parameter.elements);
        writer_.read_bytes(parameter.elements * size_of(state_.master));
        writer_.write_bytes(parameter.elements * size_of(dtype));
      }
      std::vector<Gradient>& gradients = writer_.step().gradients;
      writer_.kernel().gradients.push_back(static_cast<std::uint32_t>(gradients.size()));
      gradients.push_back({.name = parameter.name,
                           .parameter = index,
                           .elements = parameter.elements,
                           .dtype = dtype,
                           .kernel = writer_.kernel_index()});
    }
  }

  LoweringState& state_;
  const Graph& graph_;
  StepWriter& writer_;
};

}  // namespace

void lower_backward(LoweringState& state) { BackwardPass(state).run(); }

}  // namespace hcclsim::models
