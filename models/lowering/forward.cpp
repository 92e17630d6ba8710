#include "models/lowering/cube.hpp"
#include "models/lowering/general.hpp"
#include "models/lowering/state.hpp"

namespace hcclsim::models {
namespace {

using enum OperatorKind;

/// Forward kernels. An operator that runs in the kernel of another one before it is *absorbed*; the kernel is launched
/// when the last operator in it has all its inputs, and only the output of that operator is written.
class ForwardPass {
 public:
  /// In the backward phase it repeats what was not kept.
  ForwardPass(LoweringState& state, Phase phase)
      : state_(state), graph_(state.graph), writer_(state.writer), phase_(phase) {}

  void run() {
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) fuse(id);
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) {
      if (state_.next[id] == no_operator) launch(state_.head[id], id);
    }
  }

  /// Launches the kernel of `head` and of those absorbed into it as far as `tail`.
  void launch(OperatorId head, OperatorId tail) {
    write(head, tail);
    if (is_cube(graph_.operators[head].kind)) return;  // its product, between other kernels, has noted them
    for (const std::uint32_t parameter : graph_.operators[head].parameters) writer_.use(parameter);
  }

 private:
  [[nodiscard]] bool repeats() const { return phase_ == Phase::backward; }

  /// Decides whether `id` runs in the kernel of an operator before it.
  void fuse(OperatorId id) {
    state_.head[id] = id;
    if (!state_.fuses()) return;
    const Operator& op = graph_.operators[id];
    if (op.kind == batch_norm) {
      const Value input = op.inputs.front();
      const bool sums = graph_.operators[input.op].kind == convolution && state_.consumers_of(input) == 1;
      if (sums && !state_.options.forward_only) state_.reduced_by[input.op] = id;
    }
    if (op.kind != add && !is_relu(op.kind)) return;
    for (const Value input : op.inputs) {
      const OperatorKind kind = graph_.operators[state_.head[input.op]].kind;
      const bool takes_more = is_cube(kind) || kind == batch_norm || kind == add || kind == bias;
      if (takes_more && state_.consumers_of(input) == 1) {
        state_.next[input.op] = id;
        state_.head[id] = state_.head[input.op];
        return;
      }
    }
  }

  void write(OperatorId head, OperatorId tail) {
    const Operator& op = graph_.operators[head];
    writer_.enter(head, op.chunk);
    switch (op.kind) {
      case input:
        state_.value_of(head) = writer_.input(state_.bytes_of(head));
        return;
      case flatten:
      case reshape:
        state_.value_of(head) = state_.value_of(op.inputs.front());
        return;
      case average_pool:
      case dropout:
        if (is_identity(graph_, op)) {
          state_.value_of(head) = state_.value_of(op.inputs.front());
          return;
        }
        launch_vector(head, "forward");
        if (op.kind == dropout) draw_mask(head, op.shape().elements());
        break;
      case convolution:
      case linear:
      case expert_linear:
        launch_cube(head);
        break;
      case batch_norm:
        launch_batch_norm(head);
        break;
      case loss:
      case binary_loss:
        launch_loss(head);
        return;
      case max_pool:
        launch_vector(head, "forward");
        // One bit per pixel of the window and output element, as the NPU's max-pool with argmax writes it.
        if (!state_.options.forward_only) {
          state_.mask[head] = writer_.write(bytes_of_bits(op.window.area() * op.shape().elements()));
        }
        break;
      case relu:
      case relu6:
        launch_vector(head, "forward");
        write_mask(head);
        break;
      case join_rows:
        state_.value_of(head) = state_.value_of(op.inputs.front());
        return;
      case add:
      case gelu:
      case tanh:
      case rotary:
      case patches:
      case select_rows:
      case sum_rows:
      case factorization:
      case dispatch:
      case combine:
        launch_vector(head, "forward");
        break;
      case route:
        launch_vector(head, "forward");
        if (!state_.options.forward_only) {
          state_.statistics[head] = writer_.write(op.shape().elements() * size_of(DataType::fp32));
        }
        break;
      case bias:
        launch_vector(head, "forward");
        writer_.read_bytes(state_.vector_parameter_bytes(op));
        break;
      case swiglu:
        launch_swiglu(head);
        break;
      case layer_norm:
      case rms_norm:
        launch_row_norm(head);
        break;
      case token_embedding:
        launch_token_embedding(head);
        break;
      case position_embedding:
      case segment_embedding:
      case class_token:
        launch_vector(head, "forward");
        writer_.read_bytes(table_rows_bytes(op));
        break;
      case vector:
        launch_general(state_, head, phase_);
        break;
      case product:
        launch_matrix_product(state_, head, phase_);
        break;
      case attention:
        if (op.group.ranks > 1) {
          lower_ring_attention(state_, head, phase_);
          return;
        }
        if (state_.options.fused_attention) {
          launch_fused_attention(head);
        } else {
          launch_attention(head);
        }
        break;
      case join_heads:
      case repeat_heads:
      case split:
      case concat:
      case slice:
      case pad:
        launch_copy(head);
        return;
      case all_reduce:
      case all_gather:
      case reduce_scatter:
      case all_to_all:
      case broadcast:
      case neighbour_exchange:
      case host_copy:
      case send:
      case receive:
        launch_communication(head);
        return;
    }
    for (OperatorId id = head; id != tail;) {
      const OperatorId previous = id;
      id = state_.next[id];
      absorb(id, previous);
    }
    state_.value_of(tail) = writer_.write(state_.device_bytes(tail));
    if (state_.reduced_by[head] != no_operator) {
      writer_.fused("reduce");
      reduce(state_.reduced_by[head]);
    }
  }

  /// Adds the work of `id`, whose first operand comes from `previous` in the same kernel.
  void absorb(OperatorId id, OperatorId previous) {
    const Operator& op = graph_.operators[id];
    writer_.fused(name_of(op.kind));
    writer_.vector_work(1, op.shape().elements());
    for (const Value operand : op.inputs) {
      if (operand.op != previous) writer_.read(state_.value_of(operand));
    }
    if (is_relu(op.kind)) write_mask(id);
  }

  /// The kernel last launched makes a random mask. It is kept, and read by a repetition.
  void draw_mask(OperatorId id, std::uint64_t elements) {
    if (repeats()) {
      writer_.read(state_.mask[id]);
    } else {
      state_.mask[id] = writer_.write(bytes_of_bits(elements));
    }
  }

  void write_mask(OperatorId id) {
    if (state_.options.forward_only) return;
    state_.mask[id] = writer_.write(bytes_of_bits(graph_.operators[id].shape().elements()));
  }

  /// Launches an element-wise or pooling kernel; its outputs are written by the caller.
  void launch_vector(OperatorId id, std::string_view what) {
    const Operator& op = graph_.operators[id];
    writer_.launch(op.name, what, phase_, KernelClass::vector, state_.activation);
    const auto operations = static_cast<std::uint64_t>(forward_flops(graph_, op));
    writer_.vector_work(1, operations);
    for (const Value operand : op.inputs) writer_.read(state_.value_of(operand));
  }

  void launch_cube(OperatorId id) {
    const Operator& op = graph_.operators[id];
    if (state_.casts_weight(op) && !repeats()) cast_weight(op);
    Kernel& kernel = writer_.launch(op.name, "forward", phase_, kernel_class(op.kind), state_.activation);
    kernel.cube = forward_work(graph_, op);
    kernel.flops = forward_flops(graph_, op);
    writer_.read(state_.value_of(op.inputs.front()));
    writer_.read_bytes(state_.weight_bytes(op) + state_.vector_parameter_bytes(op));
    for (const std::uint32_t parameter : op.parameters) writer_.use(parameter);
  }

  void cast_weight(const Operator& op) {
    const std::uint64_t elements = state_.weight(op).elements;
    writer_.launch(op.name, "cast", phase_, KernelClass::vector, state_.master).launched = Launched::with_first;
    writer_.use(op.parameters[0]);
    writer_.vector_work(1, elements);
    writer_.read_bytes(elements * size_of(state_.master));
    writer_.write_bytes(state_.weight_bytes(op));
  }

  /// Lets the kernel last launched sum up the input of batch norm `id`.
  void reduce(OperatorId id) {
    const Operator& op = graph_.operators[id];
    writer_.vector_work(batch_norm_work::reduce, op.shape().elements());
    state_.statistics[id] = writer_.write(2 * op.shape().channels() * size_of(DataType::fp32));
  }

  /// Of a batch norm over a group: the sums of all its ranks in the place of those of this one.
  void sum_statistics(OperatorId id) {
    const Operator& op = graph_.operators[id];
    if (op.group.ranks == 1) return;
    const std::uint64_t sums = 2 * std::uint64_t{op.shape().channels()};
    state_.statistics[id] = state_.launch_internal(
        op, "sum_statistics", phase_, {.group = op.group, .elements = sums, .input = state_.statistics[id]});
  }

  void launch_batch_norm(OperatorId id) {
    const Operator& op = graph_.operators[id];
    const TensorId x = state_.value_of(op.inputs.front());
    const bool trained = !state_.options.forward_only;
    if (trained && state_.statistics[id] == no_tensor) {
      writer_.launch(op.name, "reduce", phase_, KernelClass::vector, state_.master);
      writer_.read(x);
      reduce(id);
    }
    if (trained) sum_statistics(id);
    writer_.launch(op.name, "update", phase_, KernelClass::vector, state_.master);
    writer_.vector_work(batch_norm_work::update, op.shape().elements());
    writer_.read(x);
    if (trained) writer_.read(state_.statistics[id]);
    writer_.read_bytes(state_.vector_parameter_bytes(op));
    // Running mean and variance.
    const Bytes running = 2 * op.shape().channels() * size_of(DataType::fp32);
    writer_.read_bytes(running);
    if (trained) writer_.write_bytes(running);
  }

  /// Layer norm keeps mean and variance of each row, RMS norm the reciprocal of its root mean square.
  void launch_row_norm(OperatorId id) {
    const Operator& op = graph_.operators[id];
    writer_.launch(op.name, "forward", phase_, KernelClass::vector, state_.master);
    writer_.vector_work(1, static_cast<std::uint64_t>(forward_flops(graph_, op)));
    writer_.read(state_.value_of(op.inputs.front()));
    writer_.read_bytes(state_.vector_parameter_bytes(op));
    if (state_.options.forward_only) return;
    const std::uint64_t kept = op.kind == layer_norm ? 2 : 1;
    state_.statistics[id] = writer_.write(kept * op.shape().batch() * op.heads * size_of(DataType::fp32));
  }

  /// One kernel, or without fusion one for the activation and one for the product.
  void launch_swiglu(OperatorId id) {
    if (state_.fuses()) {
      launch_vector(id, "forward");
      return;
    }
    const Operator& op = graph_.operators[id];
    const std::uint64_t elements = op.shape().elements();
    writer_.launch(op.name, name_of(op.activation), phase_, KernelClass::vector, state_.activation);
    writer_.vector_work(activation_flops(op.activation), elements);
    writer_.read(state_.value_of(op.inputs[0]));
    const TensorId activated = writer_.write(state_.bytes_of(id));
    writer_.launch(op.name, "multiply", phase_, KernelClass::vector, state_.activation);
    writer_.vector_work(1, elements);
    writer_.read(activated);
    writer_.read(state_.value_of(op.inputs[1]));
  }

  /// What is read of the table of positions, of segments or of the class token.
  [[nodiscard]] Bytes table_rows_bytes(const Operator& op) const {
    const std::uint64_t rows = op.kind == position_embedding ? op.sequence : state_.weight(op).shape.front();
    return rows * op.shape().channels() * size_of(state_.master);
  }

  /// Gathers the rows of the tokens from the table that the optimizer keeps.
  void launch_token_embedding(OperatorId id) {
    const Operator& op = graph_.operators[id];
    launch_vector(id, "forward");
    writer_.read_bytes(op.shape().elements() * size_of(state_.master));
    if (!op.on_host) return;
    writer_.kernel().kind = KernelClass::host;
    writer_.write_bytes(state_.bytes_of(id));
  }

  /// Scores, softmax and context; the caller writes the context.
  void launch_attention(OperatorId id) {
    const Operator& op = graph_.operators[id];
    state_.launch_product(op, "scores", phase_, attention_scores_work(op, key_width(op)));
    state_.read_qkv(op, 0);
    state_.read_qkv(op, 1);
    const TensorId scores = writer_.write(state_.score_bytes(op));

    writer_.launch(op.name, "softmax", phase_, KernelClass::vector, state_.activation);
    writer_.vector_work(attention_work::softmax, attention_scores(op));
    writer_.read(scores);
    state_.probabilities[id] = writer_.write(state_.score_bytes(op));
    state_.dropped[id] = state_.probabilities[id];
    if (op.drop_rate > 0) {
      writer_.launch(op.name, "dropout", phase_, KernelClass::vector, state_.activation);
      writer_.vector_work(attention_work::dropout, attention_scores(op));
      writer_.read(state_.probabilities[id]);
      draw_mask(id, attention_scores(op));
      state_.dropped[id] = writer_.write(state_.score_bytes(op));
    }

    state_.launch_product(op, "context", phase_, attention_context_work(op, value_width(op)));
    writer_.read(state_.dropped[id]);
    state_.read_qkv(op, 2);
  }

  /// One kernel for all three; with dropout, one that makes the mask before it.
  void launch_fused_attention(OperatorId id) {
    const Operator& op = graph_.operators[id];
    if (op.drop_rate > 0 && !repeats()) {
      writer_.launch(op.name, "drop_mask", phase_, KernelClass::vector, state_.activation);
      writer_.vector_work(attention_work::dropout, attention_scores(op));
      writer_.read_bytes(attention_work::seed_bytes);
      state_.mask[id] = writer_.write(bytes_of_bits(attention_scores(op)));
    }
    state_.launch_product(op, "fused", phase_, fused_scores_work(op, {key_width(op)}),
                          fused_context_work(op, {value_width(op)}));
    state_.work_on_fused_scores(op, attention_work::softmax);
    for (std::uint32_t part = 0; part < 3; ++part) state_.read_qkv(op, part);
    if (op.drop_rate > 0) writer_.read(state_.mask[id]);
    if (state_.options.forward_only) return;
    const std::uint64_t rows = std::uint64_t{op.shape().batch()} * op.heads;
    state_.statistics[id] = writer_.write(rows * attention_work::kept_per_row * size_of(DataType::fp32));
  }

  /// Parts of tensors are copied: one kernel reads all inputs and writes all outputs.
  void launch_copy(OperatorId id) {
    const Operator& op = graph_.operators[id];
    writer_.launch(op.name, "forward", phase_, KernelClass::vector, state_.activation);
    for (const Value operand : op.inputs) {
      const Bytes bytes = op.kind == slice ? state_.bytes_of(id) : state_.bytes_of(operand);
      writer_.read_part(state_.value_of(operand), bytes);
    }
    for (std::uint32_t output = 0; output < op.outputs.size(); ++output) {
      const Value value(id, output);
      state_.value_of(value) = writer_.write(state_.bytes_of(value));
    }
  }

  void launch_communication(OperatorId id) {
    const Operator& op = graph_.operators[id];
    if (!op.parameters.empty()) {
      state_.launch_parameter(op, "forward", phase_, op.kind).launched =
          state_.options.forward_only ? Launched::before_all : Launched::with_first;
      return;
    }
    if (!repeats() && restores_slice(graph_, id)) {
      state_.value_of(id) = state_.value_of(graph_.operators[op.inputs.front().op].inputs.front());
      return;
    }
    LoweringState::Communicated tensors{.value = id};
    if (op.kind != receive) {
      tensors.value = op.inputs.front();
      tensors.input = state_.value_of(tensors.value);
    }
    if (op.kind != send) tensors.output = state_.bytes_of(id);
    const TensorId left = state_.launch_communication(op, "forward", phase_, op.kind, tensors);
    if (op.kind != send) state_.value_of(id) = left;
  }

  /// For each tensor of logits one kernel reads it and its labels and writes the loss and the gradient of the logits.
  void launch_loss(OperatorId id) {
    const Operator& op = graph_.operators[id];
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const Value logits = op.inputs[i];
      const Shape& shape = graph_.tensor(logits).shape;
      const Group classes = op.loss_parts.empty() ? Group{} : op.loss_parts[i].classes;
      const std::string what = op.inputs.size() == 1 ? "forward" : graph_.operators[logits.op].name;
      const TensorId sums = classes.ranks > 1 ? sum_rows_of_group(op, what, logits, classes) : no_tensor;
      writer_.launch(op.name, what, phase_, KernelClass::vector, DataType::fp32);
      const std::uint64_t done = sums == no_tensor ? 0 : loss_work::maximum + loss_work::sums;
      writer_.vector_work((op.kind == binary_loss ? 8 : 7) - done, shape.elements());
      writer_.read(state_.value_of(logits));
      if (sums != no_tensor) writer_.read(sums);
      writer_.read_bytes(shape.batch() * size_of(DataType::int32));
      writer_.write_bytes(size_of(DataType::fp32));
      state_.contribute(logits);
    }
  }

  /// Classes are cut over a group. Of every row first the maximum is found, then the sum of the exponentials and the
  /// logit of the label, which one rank has; both over the group. Returns these sums.
  TensorId sum_rows_of_group(const Operator& op, const std::string& what, Value logits, const Group& classes) {
    const Shape& shape = graph_.tensor(logits).shape;
    const std::uint64_t rows = shape.batch();
    writer_.launch(op.name, what + "_maximum", phase_, KernelClass::vector, DataType::fp32);
    writer_.vector_work(loss_work::maximum, shape.elements());
    writer_.read(state_.value_of(logits));
    const TensorId own = writer_.write(rows * size_of(DataType::fp32));
    const TensorId maximum =
        state_.launch_internal(op, what + "_maximum_of_group", phase_,
                               {.group = classes, .reduction = ReduceOp::max, .elements = rows, .input = own});
    writer_.launch(op.name, what + "_sums", phase_, KernelClass::vector, DataType::fp32);
    writer_.vector_work(loss_work::sums, shape.elements());
    writer_.read(state_.value_of(logits));
    writer_.read(maximum);
    writer_.read_bytes(rows * size_of(DataType::int32));
    const TensorId sums = writer_.write(2 * rows * size_of(DataType::fp32));
    return state_.launch_internal(op, what + "_sums_of_group", phase_,
                                  {.group = classes, .elements = 2 * rows, .input = sums});
  }

  LoweringState& state_;
  const Graph& graph_;
  ProgramWriter& writer_;
  Phase phase_;
};

}  // namespace

void lower_forward(LoweringState& state) { ForwardPass(state, Phase::forward).run(); }

void lower_again(LoweringState& state, OperatorId head, OperatorId tail) {
  state.writer.repeat(true);
  ForwardPass(state, Phase::backward).launch(head, tail);
  state.writer.repeat(false);
}

}  // namespace hcclsim::models
