#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "models/lowering/backward_order.hpp"
#include "models/lowering/cube.hpp"
#include "models/lowering/general.hpp"
#include "models/lowering/parameter_gradients.hpp"
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
  explicit BackwardPass(LoweringState& state)
      : state_(state),
        graph_(state.graph),
        writer_(state.writer),
        gradients_(state),
        remade_(graph_.operators.size(), false) {
    writer_.program().gradients.reserve(graph_.parameters.size());
  }

  void run() {
    for (const OperatorId id : backward_order(graph_)) {
      if (!state_.needs_gradient[id]) continue;
      repeat_collectives(graph_.operators[id].layer);
      remake_for(graph_.operators[id], id);
      writer_.enter(id, graph_.operators[id].chunk);
      differentiate(id);
    }
  }

 private:
  void differentiate(OperatorId id) {
    const Operator& op = graph_.operators[id];
    const TensorId dy = op.outputs.empty() ? no_tensor : state_.gradient_of(id);
    switch (op.kind) {
      case input:
      case loss:  // its kernel of the forward pass wrote the gradient of the logits
      case binary_loss:
        return;
      case flatten:
      case reshape:
      case join_rows:
        state_.contribute_unchanged(op.inputs.front(), dy);
        return;
      case add:
        for (const Value operand : op.inputs) state_.contribute_unchanged(operand, dy);
        return;
      case bias:
        differentiate_bias(op, 0, dy);
        state_.contribute_unchanged(op.inputs.front(), dy);
        return;
      case convolution:
      case linear:
      case expert_linear:
        differentiate_cube(op, dy);
        return;
      case batch_norm:
      case layer_norm:
        differentiate_norm(id, dy);
        return;
      case rms_norm:
        differentiate_rms_norm(id, dy);
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
      case tanh:
      case rotary:
      case patches:
      case select_rows:
      case factorization:
        launch_vector(id, dy, static_cast<std::uint64_t>(backward_flops(graph_, op, true)));
        return;
      case route:
        differentiate_route(state_, id, dy);
        return;
      case dispatch:
        differentiate_dispatch(state_, id, dy);
        return;
      case combine:
        differentiate_combine(state_, op, dy);
        return;
      case sum_rows:
        if (!op.parameters.empty()) differentiate_bias(op, 0, dy);
        launch_vector(id, dy, 0);
        return;
      case swiglu:
        differentiate_swiglu(id, dy);
        return;
      case token_embedding:
        differentiate_table(op, dy);
        return;
      case position_embedding:
      case segment_embedding:
        differentiate_table(op, dy);
        state_.contribute_unchanged(op.inputs.front(), dy);
        return;
      case class_token:
        differentiate_table(op, dy);
        launch_vector(id, dy, 0);
        return;
      case attention:
        if (op.group.ranks > 1) {
          if (inputs_need_gradient(op)) differentiate_ring_attention(state_, id, dy);
        } else if (state_.options.fused_attention) {
          differentiate_fused_attention(id, dy);
        } else {
          differentiate_attention(id, dy);
        }
        return;
      case vector:
        differentiate_general(state_, gradients_, id, dy);
        return;
      case product:
        differentiate_matrix_product(state_, gradients_, op, dy);
        return;
      case broadcast:
        state_.contribute_unchanged(op.inputs.front(), dy);
        return;
      case join_heads:
      case repeat_heads:
      case split:
      case concat:
      case slice:
      case pad:
        differentiate_copy(id);
        return;
      case all_reduce:
      case all_gather:
      case reduce_scatter:
      case all_to_all:
      case neighbour_exchange:
      case host_copy:
      case send:
      case receive:
        differentiate_communication(id, dy);
        return;
    }
  }

  /// Whether the gradient of an operator depends on what it read, or on what it made.
  [[nodiscard]] static bool reads_inputs(OperatorKind kind) {
    switch (kind) {
      case convolution:
      case linear:
      case expert_linear:
      case batch_norm:
      case layer_norm:
      case rms_norm:
      case swiglu:
      case attention:
      case gelu:
      case factorization:
      case combine:
      case product:
        return true;
      default:
        return false;
    }
  }
  [[nodiscard]] static bool reads_own(OperatorKind kind) {
    return kind == relu || kind == relu6 || kind == max_pool || kind == tanh || kind == attention ||
           kind == batch_norm || kind == layer_norm || kind == rms_norm || kind == route;
  }

  /// Computes again what the gradient of an operator reads and the forward pass did not keep.
  void remake_for(const Operator& op, OperatorId id) {
    if (reads_inputs(op.kind) || (op.kind == vector && op.work.keeps_inputs)) {
      for (const Value input : op.inputs) remake(input.op);
    }
    if (op.kind == dispatch) remake(op.inputs[1].op);
    if (reads_own(op.kind) || (op.kind == vector && op.work.keeps_output)) remake(id);
  }

  /// A layer that is computed again repeats all of its collectives, as MindSpore's mp_comm_recompute has it, also those
  /// whose results the backward pass does not read.
  void repeat_collectives(std::uint32_t layer) {
    if (layer == no_layer || layer == repeated_layer_) return;
    repeated_layer_ = layer;
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) {
      const Operator& op = graph_.operators[id];
      if (op.layer == layer && op.recompute && communicates(op.kind)) remake(id);
    }
  }

  void remake(OperatorId id) {
    const OperatorId head = state_.head[id];
    OperatorId tail = id;
    while (state_.next[tail] != no_operator) tail = state_.next[tail];
    if (!graph_.operators[tail].recompute || remade_[tail]) return;
    remade_[tail] = true;
    for (OperatorId member = head;; member = state_.next[member]) {
      for (const Value input : graph_.operators[member].inputs) remake(input.op);
      if (member == tail) break;
    }
    lower_again(state_, head, tail);
  }

  void launch(const Operator& op, std::string_view what, DataType dtype) {
    writer_.launch(op.name, what, Phase::backward, kernel_class(op.kind), dtype);
  }

  /// Gradient of an operator without parameters: reads dy and its mask, if it has one; some read their input or output.
  void launch_vector(OperatorId id, TensorId dy, std::uint64_t operations) {
    const Operator& op = graph_.operators[id];
    if (!state_.needs_gradient[op.inputs.front().op]) return;
    launch(op, "gradient", state_.activation);
    writer_.vector_work(1, operations);
    writer_.read(dy);
    if (state_.mask[id] != no_tensor) writer_.read(state_.mask[id]);
    if (op.kind == gelu || op.kind == factorization) writer_.read(state_.value_of(op.inputs.front()));
    if (op.kind == tanh) writer_.read(state_.value_of(id));
    state_.contribute(op.inputs.front());
  }

  void differentiate_norm(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    const bool batch = op.kind == batch_norm;
    const Value from = op.inputs.front();
    const Bytes parameters = state_.vector_parameter_bytes(op);
    const TensorId x = state_.value_of(from);

    if (!graph_.trains(op) && !batch && !state_.needs_gradient[from.op]) return;
    launch(op, "reduce_gradient", state_.master);
    writer_.vector_work(batch ? batch_norm_work::reduce_gradient : layer_norm_work::reduce_gradient,
                        op.shape().elements());
    writer_.read(dy);
    writer_.read(x);
    writer_.read(state_.statistics[id]);
    gradients_.write(op.parameters);
    const std::uint64_t sums = 2 * std::uint64_t{op.shape().channels()};
    const bool in_group = op.group.ranks > 1;
    const TensorId own = in_group ? writer_.write(sums * size_of(DataType::fp32)) : no_tensor;
    gradients_.finish({op.parameters[1], op.parameters[0]});
    if (!state_.needs_gradient[from.op]) return;

    const TensorId of_group = in_group ? state_.launch_internal(op, "sum_gradients", Phase::backward,
                                                                {.group = op.group, .elements = sums, .input = own})
                                       : no_tensor;
    launch(op, "apply_gradient", state_.master);
    if (in_group) writer_.read(of_group);
    writer_.vector_work(batch ? batch_norm_work::apply_gradient : layer_norm_work::apply_gradient,
                        op.shape().elements());
    writer_.read(dy);
    writer_.read(x);
    writer_.read(state_.statistics[id]);
    // Gamma; a batch norm also uses the gradients of gamma and beta, a layer norm has sums of its own along the row.
    writer_.read_bytes((batch ? parameters : 0) + parameters / 2);
    for (const std::uint32_t parameter : op.parameters) writer_.use(parameter);
    state_.contribute(from);
  }

  /// One kernel for the gradients of the weight and of the input.
  void differentiate_rms_norm(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    const Value from = op.inputs.front();
    const bool whole = state_.needs_gradient[from.op];
    launch(op, "gradient", state_.master);
    writer_.vector_work(whole ? rms_norm_work::gradient : rms_norm_work::weight_gradient, op.shape().elements());
    writer_.read(dy);
    writer_.read(state_.value_of(from));
    writer_.read(state_.statistics[id]);
    writer_.read_bytes(state_.vector_parameter_bytes(op));
    writer_.use(op.parameters[0]);
    gradients_.write(op.parameters);
    if (whole) state_.contribute(from);
    gradients_.finish({op.parameters[0]});
  }

  /// One kernel for both operands; it computes the activation again.
  void differentiate_swiglu(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    launch(op, "gradient", state_.activation);
    writer_.vector_work(activation_slope_flops(op.activation) + 1, op.shape().elements());
    for (const Value operand : op.inputs) writer_.read(state_.value_of(operand));
    writer_.read(dy);
    state_.contribute_each(op);
  }

  /// The whole table is written: rows without a token (or position) get zeros.
  void differentiate_table(const Operator& op, TensorId dy) {
    launch(op, "weight_gradient", state_.master);
    writer_.vector_work(1, op.shape().elements());
    writer_.read(dy);
    if (op.kind == token_embedding) writer_.read(state_.value_of(op.inputs.front()));
    if (op.on_host) {
      writer_.kernel().kind = KernelClass::host;
      writer_.read_bytes(op.shape().elements() * size_of(state_.activation));
    }
    gradients_.write(op.parameters);
    gradients_.finish({op.parameters[0]});
  }

  /// The gradients of queries, keys and values: parts of one tensor, if the operator reads one, or three tensors.
  class QkvGradients {
   public:
    QkvGradients(LoweringState& state, const Operator& op) : state_(state), op_(op) {}

    /// The kernel last launched writes the gradient of queries (0), keys (1) or values (2).
    void write(std::uint32_t part) {
      const Bytes bytes = qkv_elements(op_, part) * size_of(state_.activation);
      TensorId& tensor = tensors_.at(op_.inputs.size() == 1 ? 0 : part);
      if (tensor == no_tensor) {
        tensor = state_.writer.write(bytes);
      } else {
        state_.writer.write_part(tensor, bytes);
      }
    }
    void contribute() const {
      for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
        state_.contribute_unchanged(op_.inputs[i], tensors_.at(i));
      }
    }

   private:
    LoweringState& state_;
    const Operator& op_;
    std::array<TensorId, 3> tensors_{no_tensor, no_tensor, no_tensor};
  };

  [[nodiscard]] bool inputs_need_gradient(const Operator& op) const {
    return std::ranges::any_of(op.inputs, [&](Value input) { return state_.needs_gradient[input.op]; });
  }

  /// Gradients of values, probabilities, scores, queries and keys, in this order.
  void differentiate_attention(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    if (!inputs_need_gradient(op)) return;
    QkvGradients gradients(state_, op);

    state_.launch_product(op, "value_gradient", Phase::backward, attention_context_work(op, value_width(op)));
    writer_.read(state_.dropped[id]);
    writer_.read(dy);
    gradients.write(2);

    state_.launch_product(op, "probability_gradient", Phase::backward, attention_scores_work(op, value_width(op)));
    writer_.read(dy);
    state_.read_qkv(op, 2);
    TensorId probability_gradient = writer_.write(state_.score_bytes(op));
    if (op.drop_rate > 0) {
      writer_.launch(op.name, "dropout_gradient", Phase::backward, KernelClass::vector, state_.activation);
      writer_.vector_work(attention_work::dropout, attention_scores(op));
      writer_.read(probability_gradient);
      writer_.read(state_.mask[id]);
      probability_gradient = writer_.write(state_.score_bytes(op));
    }

    writer_.launch(op.name, "softmax_gradient", Phase::backward, KernelClass::vector, state_.activation);
    writer_.vector_work(attention_work::softmax_gradient, attention_scores(op));
    writer_.read(probability_gradient);
    writer_.read(state_.probabilities[id]);
    const TensorId score_gradient = writer_.write(state_.score_bytes(op));

    for (const std::uint32_t part : {0U, 1U}) {
      state_.launch_product(op, part == 0 ? "query_gradient" : "key_gradient", Phase::backward,
                            attention_context_work(op, key_width(op)));
      writer_.read(score_gradient);
      state_.read_qkv(op, 1 - part);
      gradients.write(part);
    }
    gradients.contribute();
  }

  /// One kernel: the scores once more, then the four products.
  void differentiate_fused_attention(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    if (!inputs_need_gradient(op)) return;
    QkvGradients gradients(state_, op);
    const std::uint32_t keys = key_width(op);
    const std::uint32_t values = value_width(op);
    state_.launch_product(op, "fused_gradient", Phase::backward, fused_scores_work(op, {keys, values}),
                          fused_context_work(op, {values, keys, keys}));
    state_.work_on_fused_scores(op, attention_work::softmax + attention_work::softmax_gradient);
    for (std::uint32_t part = 0; part < 3; ++part) state_.read_qkv(op, part);
    writer_.read(state_.value_of(id));
    writer_.read(dy);
    writer_.read(state_.statistics[id]);
    if (op.drop_rate > 0) writer_.read(state_.mask[id]);
    for (std::uint32_t part = 0; part < 3; ++part) gradients.write(part);
    gradients.contribute();
  }

  /// Sums up dy over its rows; `number`: of the bias among the operator's parameters.
  void differentiate_bias(const Operator& op, std::size_t number, TensorId dy) {
    if (graph_.parameters[op.parameters[number]].frozen) return;
    writer_.launch(op.name, "bias_gradient", Phase::backward, KernelClass::vector, state_.master);
    writer_.vector_work(1, op.shape().elements());
    writer_.read(dy);
    gradients_.write({&op.parameters[number], 1});
    gradients_.finish({op.parameters[number]});
  }

  void differentiate_cube(const Operator& op, TensorId dy) {
    const Value from = op.inputs.front();
    const Flops product = forward_flops(graph_, op);
    if (op.parameters.size() > 1) differentiate_bias(op, 1, dy);
    if (!graph_.parameters[op.parameters[0]].frozen) {
      launch(op, "weight_gradient", state_.activation);
      writer_.kernel().cube = weight_gradient_work(graph_, op);
      writer_.kernel().flops = product;
      writer_.read(dy);
      writer_.read(state_.value_of(from));
      gradients_.write({op.parameters.data(), 1});
      gradients_.finish({op.parameters[0]});
    }
    if (!state_.needs_gradient[from.op]) return;

    launch(op, "data_gradient", state_.activation);
    writer_.kernel().cube = data_gradient_work(graph_, op);
    writer_.kernel().flops = product;
    writer_.read(dy);
    writer_.read_bytes(state_.weight_bytes(op));
    writer_.use(op.parameters[0]);
    state_.contribute(from);
  }

  /// One kernel reads the gradients of all outputs and writes those of the inputs; around a slice it writes zeros, what
  /// it padded it leaves out.
  void differentiate_copy(OperatorId id) {
    const Operator& op = graph_.operators[id];
    if (op.kind == slice && is_kept_slice(graph_, id)) {
      state_.contribute_unchanged(op.inputs.front(), state_.gradient_of(id));
      return;
    }
    writer_.launch(op.name, "gradient", Phase::backward, KernelClass::vector, state_.activation);
    for (std::uint32_t output = 0; output < op.outputs.size(); ++output) {
      const TensorId dy = state_.gradient_of({id, output});
      if (dy != no_tensor) writer_.read(dy);  // none: nobody uses this output
    }
    state_.contribute_each(op);
  }

  /// Launches the dual of the operator (module comment of lower.hpp).
  void differentiate_communication(OperatorId id, TensorId dy) {
    const Operator& op = graph_.operators[id];
    if (!op.parameters.empty()) {
      gradients_.exchange(op, dual_of(op.kind));
      return;
    }
    if (restores_slice(graph_, id)) {
      state_.contribute_unchanged(op.inputs.front(), dy);
      return;
    }
    const bool sends = op.kind == receive;
    if (!sends && !state_.needs_gradient[op.inputs.front().op]) return;
    LoweringState::Communicated tensors{.value = op.kind == send ? op.inputs.front() : Value(id), .input = dy};
    if (!sends) tensors.output = state_.device_bytes(op.inputs.front());
    const TensorId left = state_.launch_communication(op, "gradient", Phase::backward, dual_of(op.kind), tensors);
    if (!sends) state_.contribute_unchanged(op.inputs.front(), left);
  }

  LoweringState& state_;
  const Graph& graph_;
  ProgramWriter& writer_;
  ParameterGradients gradients_;
  std::uint32_t repeated_layer_ = no_layer;
  std::vector<bool> remade_;  ///< operators that have been computed again
};

}  // namespace

void lower_backward(LoweringState& state) { BackwardPass(state).run(); }

}  // namespace hcclsim::models
