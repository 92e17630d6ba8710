#include <array>
#include <string>

#include "models/lowering/cube.hpp"
#include "models/lowering/state.hpp"

/// Attention whose positions are cut over a group (Liu et al., "Ring Attention with Blockwise Transformers"). The
/// queries of a rank meet one block of keys and values after the other: its own first, then what the previous rank had,
/// while that goes on to the next one. In the backward pass the gradients of keys and values go round with them, and
/// one step further: home. What a causal mask hides is not computed; all ranks take the time of the last one, whose
/// queries see every block.
namespace hcclsim::models {
namespace {

/// Element operations per element of the context: what earlier blocks gave is scaled, and added to.
constexpr std::uint64_t merge_work = 3;

class RingAttention {
 public:
  RingAttention(LoweringState& state, OperatorId id, Phase phase)
      : state_(state), writer_(state.writer), id_(id), op_(state.graph.operators[id]), phase_(phase) {}

  void run_forward() {
    const std::uint64_t rows = std::uint64_t{op_.shape().batch()} * op_.heads;
    const Bytes statistics = rows * attention_work::kept_per_row * size_of(DataType::fp32);
    draw_mask();
    TensorId block = pack();
    TensorId context = no_tensor;
    TensorId kept = no_tensor;
    for (std::uint32_t step = 0; step < op_.group.ranks; ++step) {
      const bool last = step + 1 == op_.group.ranks;
      const TensorId next = last ? no_tensor : rotate(fmt_step("rotate", step), block);
      const Operator part = part_of(step);
      state_.launch_product(part, fmt_step("block", step), phase_, fused_scores_work(part, {key_width(part)}),
                            fused_context_work(part, {value_width(part)}));
      state_.work_on_fused_scores(part, attention_work::softmax);
      state_.read_qkv(op_, 0);
      writer_.read(block);
      if (op_.drop_rate > 0) writer_.read(state_.mask[id_]);
      if (context != no_tensor) {
        writer_.vector_work(merge_work, op_.shape().elements());
        writer_.read(context);
        writer_.read(kept);
      }
      context = writer_.write(state_.bytes_of(id_));
      kept = writer_.write(statistics);
      block = next;
    }
    state_.value_of(id_) = context;
    state_.statistics[id_] = kept;
  }

  void run_backward(TensorId dy) {
    const std::uint32_t keys = key_width(op_);
    const std::uint32_t values = value_width(op_);
    TensorId block = pack();
    TensorId query_gradient = no_tensor;
    TensorId block_gradient = no_tensor;
    for (std::uint32_t step = 0; step < op_.group.ranks; ++step) {
      const bool last = step + 1 == op_.group.ranks;
      const TensorId next = last ? no_tensor : rotate(fmt_step("rotate", step), block);
      const Operator part = part_of(step);
      state_.launch_product(part, fmt_step("gradient_block", step), phase_, fused_scores_work(part, {keys, values}),
                            fused_context_work(part, {values, keys, keys}));
      state_.work_on_fused_scores(part, attention_work::softmax + attention_work::softmax_gradient);
      state_.read_qkv(op_, 0);
      writer_.read(block);
      writer_.read(state_.value_of(id_));
      writer_.read(dy);
      writer_.read(state_.statistics[id_]);
      if (op_.drop_rate > 0) writer_.read(state_.mask[id_]);
      if (query_gradient != no_tensor) {
        writer_.read(query_gradient);
        writer_.read(block_gradient);
      }
      query_gradient = writer_.write(qkv_elements(op_, 0) * size_of(state_.activation));
      block_gradient = rotate_gradient(step, writer_.write(block_bytes()));
      block = next;
    }
    contribute(query_gradient, block_gradient);
  }

 private:
  [[nodiscard]] static std::string fmt_step(std::string_view what, std::uint32_t step) {
    return std::string(what).append("_").append(std::to_string(step));
  }

  /// Elements of keys and values of this rank.
  [[nodiscard]] std::uint64_t block_elements() const { return qkv_elements(op_, 1) + qkv_elements(op_, 2); }
  [[nodiscard]] Bytes block_bytes() const { return block_elements() * size_of(state_.activation); }

  /// The attention to one block: to its own a causal mask applies, others are seen whole.
  [[nodiscard]] Operator part_of(std::uint32_t step) const {
    Operator part = op_;
    part.group = {};
    part.causal = op_.causal && step == 0;
    return part;
  }

  void draw_mask() {
    if (op_.drop_rate == 0 || phase_ == Phase::backward) return;  // a repetition reads that of the forward pass
    writer_.launch(op_.name, "drop_mask", phase_, KernelClass::vector, state_.activation);
    writer_.vector_work(attention_work::dropout, attention_scores(op_));
    writer_.read_bytes(attention_work::seed_bytes);
    state_.mask[id_] = writer_.write(bytes_of_bits(attention_scores(op_)));
  }

  /// Keys and values side by side, as they are sent.
  TensorId pack() {
    writer_.launch(op_.name, "pack", phase_, KernelClass::vector, state_.activation);
    state_.read_qkv(op_, 1);
    state_.read_qkv(op_, 2);
    return writer_.write(block_bytes());
  }

  TensorId rotate(const std::string& what, TensorId block) {
    const std::uint64_t elements = block_elements();
    NeighbourElements neighbours{.ring = true};
    neighbours.to(1) = elements;
    return state_.launch_internal(op_, what, phase_,
                                  {.kind = OperatorKind::neighbour_exchange,
                                   .group = op_.group,
                                   .dtype = state_.activation,
                                   .neighbours = neighbours,
                                   .elements = elements,
                                   .input = block});
  }
  TensorId rotate_gradient(std::uint32_t step, TensorId gradient) {
    return rotate(fmt_step("rotate_gradient", step), gradient);
  }

  /// One kernel brings the gradients into the tensors that the operator read.
  void contribute(TensorId query_gradient, TensorId block_gradient) {
    writer_.launch(op_.name, "unpack", phase_, KernelClass::vector, state_.activation);
    writer_.read(block_gradient);
    std::array<TensorId, 3> written{query_gradient, no_tensor, no_tensor};
    const bool packed = op_.inputs.size() == 1;
    if (packed) writer_.read(query_gradient);
    for (std::size_t i = packed ? 0 : 1; i < op_.inputs.size(); ++i) {
      written.at(i) = writer_.write(state_.bytes_of(op_.inputs[i]));
    }
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) state_.contribute_unchanged(op_.inputs[i], written.at(i));
  }

  LoweringState& state_;
  ProgramWriter& writer_;
  OperatorId id_;
  const Operator& op_;
  Phase phase_;
};

}  // namespace

void lower_ring_attention(LoweringState& state, OperatorId id, Phase phase) {
  RingAttention(state, id, phase).run_forward();
}

void differentiate_ring_attention(LoweringState& state, OperatorId id, TensorId dy) {
  RingAttention(state, id, Phase::backward).run_backward(dy);
}

}  // namespace hcclsim::models
