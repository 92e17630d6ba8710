#include <string_view>

#include "models/lowering/backward_order.hpp"
#include "models/lowering/cube.hpp"
#include "models/lowering/state.hpp"

namespace hcclsim::models {
namespace {

using enum OperatorKind;

OperatorKind dual_of(OperatorKind kind) {
  switch (kind) {
    case all_gather:
      return reduce_scatter;
    case reduce_scatter:
      return all_gather;
    case send:
      return receive;
    case receive:
      return send;
    default:
      return kind;
  }
}

class BackwardPass {
 public:
  explicit BackwardPass(LoweringState& state) : state_(state), graph_(state.graph), writer_(state.writer) {
    writer_.program().gradients.reserve(graph_.parameters.size());
  }

  void run() {
    for (const OperatorId id : backward_order(graph_)) {
      if (state_.needs_gradient[id]) differentiate(id);
    }
  }

 private:
  void differentiate(OperatorId id) {
    const Operator& op = graph_.operators[id];
    const TensorId dy = op.outputs.empty() ? no_tensor : state_.gradient_of(id);
    writer_.enter(id);
    switch (op.kind) {
      case input:
      case loss:  // its kernel of the forward pass wrote the gradient of the logits
        return;
      case flatten:
        state_.contribute_unchanged(op.inputs.front(), dy);
        return;
      case add:
        for (const Value operand : op.inputs) state_.contribute_unchanged(operand, dy);
        return;
      case convolution:
      case linear:
        differentiate_cube(op, dy);
        return;
      case batch_norm:
      case layer_norm:
        differentiate_norm(id, dy);
        return;
      case relu:
      case relu6:
        // Without a gradient of its own the mask was applied by the kernel that computed it.
        if (dy != no_tensor) launch_vector(id, dy, op.shape().elements());
        return;
      case max_pool:
        launch_vector(id, dy, op.window.area() * op.shape().elements());
        return;
      case average_pool:
      case dropout:
        if (is_identity(graph_, op)) {
          state_.contribute_unchanged(op.inputs.front(), dy);
          return;
        }
        launch_vector(id, dy, static_cast<std::uint64_t>(forward_flops(graph_, op)));
        return;
      case gelu:
        launch_vector(id, dy, static_cast<std::uint64_t>(backward_flops(graph_, op, true)));
        return;
      case token_embedding:
        differentiate_table(op, dy);
        return;
      case position_embedding:
        differentiate_table(op, dy);
        state_.contribute_unchanged(op.inputs.front(), dy);
        return;
      case attention:
        differentiate_attention(id, dy);
        return;
      case broadcast:
        state_.contribute_unchanged(op.inputs.front(), dy);
        return;
      case split:
      case concat:
      case slice:
        differentiate_copy(id);
        return;
      case all_reduce:
      case all_gather:
      case reduce_scatter:
      case all_to_all:
      case send:
      case receive:
        differentiate_communication(id, dy);
        return;
    }
  }

  void launch(const Operator& op, std::string_view what, DataType dtype) {
    writer_.launch(op.name, what, Phase::backward, kernel_class(op.kind), dtype);
  }

  /// Gradient of an operator without parameters: reads dy and its mask, if it has one; GELU reads its input.
  void launch_vector(OperatorId id, TensorId dy, std::uint64_t operations) {
    const Operator& op = graph_.operators[id];
    if (!state_.needs_gradient[op.inputs.front().op]) return;
    launch(op, "gradient", state_.activation);
    writer_.vector_work(1, operations);
    writer_.read(dy);
    if (state_.mask[id] != no_tensor) writer_.read(state_.mask[id]);
    if (op.kind == gelu) writer_.read(state_.value_of(op.inputs.front()));
    state_.contribute(op.inputs.front());
  }

  void differentiate_norm(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    const bool batch = op.kind == batch_norm;
    const Value from = op.inputs.front();
    const Bytes parameters = state_.vector_parameter_bytes(op);
    const TensorId x = state_.value_of(from);

    launch(op, "reduce_gradient", state_.master);
    writer_.vector_work(batch ? batch_norm_work::reduce_gradient : layer_norm_work::reduce_gradient,
                        op.shape().elements());
    writer_.read(dy);
    writer_.read(x);
    writer_.read(state_.statistics[id]);
    writer_.write_bytes(parameters);
    finish_gradients({op.parameters[1], op.parameters[0]});
    if (!state_.needs_gradient[from.op]) return;

    launch(op, "apply_gradient", state_.master);
    writer_.vector_work(batch ? batch_norm_work::apply_gradient : layer_norm_work::apply_gradient,
                        op.shape().elements());
    writer_.read(dy);
    writer_.read(x);
    writer_.read(state_.statistics[id]);
    // Gamma; a batch norm also uses the gradients of gamma and beta, a layer norm has sums of its own along the row.
    writer_.read_bytes((batch ? parameters : 0) + parameters / 2);
    state_.contribute(from);
  }

  /// The whole table is written: rows without a token (or position) get zeros.
  void differentiate_table(const Operator& op, TensorId dy) {
    launch(op, "weight_gradient", state_.master);
    writer_.vector_work(1, op.shape().elements());
    writer_.read(dy);
    if (op.kind == token_embedding) writer_.read(state_.value_of(op.inputs.front()));
    writer_.write_bytes(state_.table_bytes(op));
    finish_gradients({op.parameters[0]});
  }

  /// Gradients of values, probabilities, scores, queries and keys, in this order.
  void differentiate_attention(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    const Value from = op.inputs.front();
    if (!state_.needs_gradient[from.op]) return;
    const TensorId qkv = state_.value_of(from);
    const TensorId probabilities = state_.probabilities[id];
    const Bytes part = state_.activation_bytes(op.shape());  // queries, keys or values
    const Bytes scores_bytes = attention_scores(op) * size_of(state_.activation);

    state_.launch_product(op, "value_gradient", Phase::backward, attention_context_work(op));
    writer_.read(probabilities);
    writer_.read(dy);
    const TensorId gradient = writer_.write(part);

    state_.launch_product(op, "probability_gradient", Phase::backward, attention_scores_work(op));
    writer_.read(dy);
    writer_.read_part(qkv, part);
    const TensorId probability_gradient = writer_.write(scores_bytes);

    writer_.launch(op.name, "softmax_gradient", Phase::backward, KernelClass::vector, state_.activation);
    writer_.vector_work(attention_work::softmax_gradient, attention_scores(op));
    writer_.read(probability_gradient);
    writer_.read(probabilities);
    const TensorId score_gradient = writer_.write(scores_bytes);

    for (const std::string_view what : {"query_gradient", "key_gradient"}) {
      state_.launch_product(op, what, Phase::backward, attention_context_work(op));
      writer_.read(score_gradient);
      writer_.read_part(qkv, part);
      writer_.write_part(gradient, part);
    }
    state_.contribute_unchanged(from, gradient);
  }

  void differentiate_cube(const Operator& op, TensorId dy) {
    const Value from = op.inputs.front();
    const Flops product = forward_flops(graph_, op);
    if (op.parameters.size() > 1) {
      writer_.launch(op.name, "bias_gradient", Phase::backward, KernelClass::vector, state_.master);
      writer_.vector_work(1, op.shape().elements());
      writer_.read(dy);
      writer_.write_bytes(state_.vector_parameter_bytes(op));
      finish_gradients({op.parameters[1]});
    }
    launch(op, "weight_gradient", state_.activation);
    writer_.kernel().cube = weight_gradient_work(graph_, op);
    writer_.kernel().flops = product;
    writer_.read(dy);
    writer_.read(state_.value_of(from));
    writer_.write_bytes(state_.weight(op).elements * size_of(state_.master));
    finish_gradients({op.parameters[0]});
    if (!state_.needs_gradient[from.op]) return;

    launch(op, "data_gradient", state_.activation);
    writer_.kernel().cube = data_gradient_work(graph_, op);
    writer_.kernel().flops = product;
    writer_.read(dy);
    writer_.read_bytes(state_.weight_bytes(op));
    state_.contribute(from);
  }

  /// One kernel reads the gradients of all outputs and writes those of the inputs; around a slice it writes zeros.
  void differentiate_copy(OperatorId id) {
    const Operator& op = graph_.operators[id];
    writer_.launch(op.name, "gradient", Phase::backward, KernelClass::vector, state_.activation);
    for (std::uint32_t output = 0; output < op.outputs.size(); ++output) {
      const TensorId dy = state_.gradient_of({id, output});
      if (dy != no_tensor) writer_.read(dy);  // none: nobody uses this output
    }
    // All are written by this kernel before one of them is added to what is there.
    std::vector<TensorId> written;
    for (const Value operand : op.inputs) {
      written.push_back(state_.needs_gradient[operand.op] ? writer_.write(state_.bytes_of(operand)) : no_tensor);
    }
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (written[i] != no_tensor) state_.contribute_unchanged(op.inputs[i], written[i]);
    }
  }

  /// Launches the dual of the operator (module comment of lower.hpp).
  void differentiate_communication(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    const bool sends = op.kind == receive;
    if (!sends && !state_.needs_gradient[op.inputs.front().op]) return;
    const Value came = op.kind == send ? op.inputs.front() : Value(id);
    CommunicationWork& work = state_.launch_communication(op, "gradient", Phase::backward, dual_of(op.kind), came);
    if (dy != no_tensor) writer_.read(work.input = dy);
    if (sends) return;
    const Value to = op.inputs.front();
    state_.contribute_unchanged(to, work.output = writer_.write(state_.bytes_of(to)));
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
      writer_.program().gradients.push_back({.name = parameter.name,
                                             .parameter = index,
                                             .elements = parameter.elements,
                                             .dtype = dtype,
                                             .kernel = writer_.kernel_index()});
    }
  }

  LoweringState& state_;
  const Graph& graph_;
  ProgramWriter& writer_;
};

}  // namespace

void lower_backward(LoweringState& state) { BackwardPass(state).run(); }

}  // namespace hcclsim::models
