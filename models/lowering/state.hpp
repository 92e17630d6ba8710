#pragma once

#include <optional>
#include <vector>

#include "models/lowering/lower.hpp"
#include "models/lowering/program_writer.hpp"

/// What the forward and the backward half of lower() share: which operators run in one kernel, the tensors that the
/// forward pass leaves for the backward pass, and the gradients gathered so far.
namespace hcclsim::models {

/// Element operations per element of batch norm's four kernels; 7 forward and 11 backward together.
namespace batch_norm_work {
inline constexpr std::uint64_t reduce = 3;  // sum, square, sum of squares
inline constexpr std::uint64_t update = 4;  // subtract mean, scale, gamma, beta
inline constexpr std::uint64_t reduce_gradient = 5;
inline constexpr std::uint64_t apply_gradient = 6;
}  // namespace batch_norm_work

/// The same of layer norm, whose forward pass is one kernel; 15 backward.
namespace layer_norm_work {
inline constexpr std::uint64_t reduce_gradient = 5;
inline constexpr std::uint64_t apply_gradient = 10;  // two sums along the row and their subtraction
}  // namespace layer_norm_work

/// The same of RMS norm, whose backward pass is one kernel; without a gradient of the input it has 3.
namespace rms_norm_work {
inline constexpr std::uint64_t gradient = 9;
inline constexpr std::uint64_t weight_gradient = 3;
}  // namespace rms_norm_work

/// Element operations per score of attention.
namespace attention_work {
inline constexpr std::uint64_t softmax = 6;  // scale, maximum, difference, exponential, sum, quotient
inline constexpr std::uint64_t softmax_gradient = 5;
inline constexpr std::uint64_t dropout = 1;
inline constexpr Bytes seed_bytes = 16;  // two numbers of 64 bits that a mask is made from
/// fp32 numbers per row and head that a fused attention keeps for its backward pass: the row's maximum and sum, eight
/// times each, as torch_npu documents the outputs of npu_fusion_attention.
inline constexpr std::uint64_t kept_per_row = 16;
}  // namespace attention_work

/// Element operations per logit of a loss over a group, of the seven that a loss has.
namespace loss_work {
inline constexpr std::uint64_t maximum = 1;
inline constexpr std::uint64_t sums = 3;  // difference, exponential, sum
}  // namespace loss_work

struct LoweringState {
  LoweringState(const Graph& the_graph, const LoweringOptions& the_options);

  const Graph& graph;
  LoweringOptions options;
  DataType activation;
  DataType master;
  std::vector<std::uint32_t> first_value;  ///< per operator: number of its first value
  std::vector<std::uint32_t> consumers;    ///< per value
  std::vector<bool> needs_gradient;        ///< per operator
  ProgramWriter writer;

  // Tensors; no_tensor where there is none. Per value:
  std::vector<TensorId> value;
  std::vector<TensorId> gradient;                    ///< as far as its consumers have contributed
  std::vector<std::uint32_t> pending_contributions;  ///< consumers that have not contributed yet
  // Per operator:
  std::vector<TensorId> mask;  ///< bits that the backward pass needs: ReLU, dropout, max_pool
  /// Mean and variance, fp32; batch norm: per channel, layer norm: per row. Of gates the whole softmax.
  std::vector<TensorId> statistics;
  std::vector<TensorId> probabilities;  ///< attention: per sequence, head and pair of positions
  std::vector<TensorId> dropped;        ///< attention with dropout: the probabilities behind it
  // Which operators run in one kernel; no_operator where there is none. Per operator:
  std::vector<OperatorId> head;        ///< the one in whose kernel it runs
  std::vector<OperatorId> next;        ///< the one absorbed after it
  std::vector<OperatorId> reduced_by;  ///< per convolution: the batch norm whose sums it computes
  // Per parameter:
  std::vector<std::uint32_t> pending_gradients;  ///< operators that have not contributed to its gradient yet
  std::vector<bool> shared;                      ///< whether another stage has it too
  std::vector<bool> received;                    ///< whether that stage owns it
  std::vector<bool> looked_up;  ///< whether it is a table of tokens, which is read as the optimizer keeps it
  std::vector<bool> cast;       ///< whether kernels read it in the type of the products

  [[nodiscard]] std::uint32_t number_of(Value v) const { return first_value[v.op] + v.output; }
  [[nodiscard]] TensorId& value_of(Value v) { return value[number_of(v)]; }
  [[nodiscard]] TensorId& gradient_of(Value v) { return gradient[number_of(v)]; }
  [[nodiscard]] std::uint32_t consumers_of(Value v) const { return consumers[number_of(v)]; }
  [[nodiscard]] DataType used_as(std::uint32_t parameter) const { return cast[parameter] ? activation : master; }
  /// Type in which the stage that owns a parameter sends it to others.
  [[nodiscard]] DataType sent_as(std::uint32_t parameter) const {
    return options.sharding.is_copy(parameter) ? activation : master;
  }
  /// Types of the gradient of a parameter on its way.
  struct GradientTypes {
    DataType produced;                    ///< as the backward pass writes it
    DataType communicated;                ///< as it is reduced
    std::optional<DataType> cast_back{};  ///< as Gradient::cast_back
  };
  [[nodiscard]] GradientTypes gradient_types(std::uint32_t parameter) const;
  [[nodiscard]] bool fuses() const { return options.fusion == Fusion::full; }
  [[nodiscard]] Bytes activation_bytes(const Shape& shape) const { return shape.elements() * size_of(activation); }
  /// Bytes of a value in HBM: those of mixed precision unless it holds whole numbers.
  [[nodiscard]] Bytes bytes_of(Value v) const { return graph.tensor(v).shape.elements() * size_of(type_of(v)); }
  /// What of them is in HBM: nothing of what the host has.
  [[nodiscard]] Bytes device_bytes(Value v) const { return graph.operators[v.op].on_host ? 0 : bytes_of(v); }
  /// Type of a value in HBM and on the wire: that of mixed precision, unless the network says another one than fp32.
  [[nodiscard]] DataType type_of(Value v) const {
    const DataType dtype = graph.tensor(v).dtype;
    return dtype == DataType::fp32 ? activation : dtype;
  }
  [[nodiscard]] const Parameter& weight(const Operator& op) const { return graph.parameters[op.parameters[0]]; }
  /// Bytes of the weight of a convolution or linear operator as the cube reads it.
  [[nodiscard]] Bytes weight_bytes(const Operator& op) const { return weight(op).elements * size_of(activation); }
  /// Bytes of an embedding's table as the optimizer keeps it, or a frozen one.
  [[nodiscard]] Bytes table_bytes(const Operator& op) const {
    return weight(op).elements * size_of(weight(op).frozen ? activation : master);
  }
  /// Bytes of all parameters of an operator but a cube's weight: bias, gamma and beta, as the optimizer keeps them.
  [[nodiscard]] Bytes vector_parameter_bytes(const Operator& op) const;
  /// Bytes of the scores of an attention, or of its probabilities.
  [[nodiscard]] Bytes score_bytes(const Operator& op) const { return attention_scores(op) * size_of(activation); }
  /// The kernel last launched reads part 0, 1 or 2 of attention's inputs: queries, keys, values.
  void read_qkv(const Operator& op, std::uint32_t part);

  /// Whether each micro-batch reduces its gradient of a parameter, and adds a part of it to a sum. What comes back from
  /// another stage comes as a sum over all micro-batches.
  [[nodiscard]] bool sums_parts(std::uint32_t parameter) const {
    return options.sharding.shards_of(parameter) > 1 && options.sharding.keeps_gradient_parts() && !shared[parameter];
  }
  /// Whether a part of a gradient is all that stays of it once it is reduced. Where nothing is added up, that is so in
  /// a graph, whose tensors end with their last reader; ZeRO 1 keeps gradients in buffers of their own.
  [[nodiscard]] bool keeps_part(std::uint32_t parameter) const {
    const bool reduced_once = options.sharding.kind == Sharding::weights && !options.accumulate && !shared[parameter];
    return sums_parts(parameter) || (reduced_once && options.sharding.shards_of(parameter) > 1);
  }

  /// Whether the weight of a convolution or linear operator is cast before it is used. What several ranks share is
  /// cast by its update instead, a part by each.
  [[nodiscard]] bool casts_weight(const Operator& op) const;

  /// Launches one of attention's products, or two kinds of them in one kernel.
  void launch_product(const Operator& op, std::string_view what, Phase phase, const CubeWork& work,
                      const CubeWork& second = {});
  /// Operations of the vector unit on each score that a fused attention computes, in fp32.
  void work_on_fused_scores(const Operator& op, std::uint64_t operations);

  /// Tensors of a communication operator, as the network has them.
  struct Communicated {
    Value value;                    ///< what is sent, or of a receive what comes; or the gradient of that
    TensorId input = no_tensor;     ///< none: a receive
    std::optional<Bytes> output{};  ///< bytes of what it leaves; none: a send
  };
  /// Launches communication of a value, or of its gradient, with the casts around it. Returns what it leaves.
  TensorId launch_communication(const Operator& op, std::string_view what, Phase phase, OperatorKind kind,
                                const Communicated& tensors);

  /// Launches communication inside an operator, an all_reduce of fp32 numbers unless `work` says otherwise. Returns
  /// what comes, which is as large as what is sent.
  TensorId launch_internal(const Operator& op, std::string_view what, Phase phase, CommunicationWork work);

  /// Launches communication of a parameter of `op`, or of its gradient, between the stages that have it.
  Kernel& launch_parameter(const Operator& op, std::string_view what, Phase phase, OperatorKind kind);

  /// Lets the kernel last launched write the gradient of `to`. With fusion it also adds earlier
  /// contributions and, if it is the last one and `to` a ReLU, applies the mask: then the gradient of the ReLU's input
  /// is what is written. Without fusion an addition is a kernel of its own.
  void contribute(Value to);
  /// The kernel last launched writes the gradient of every input before one of them is added to what is there.
  void contribute_each(const Operator& op);
  /// Hands the finished gradient `tensor` on to `to` without a kernel, unless it must be added.
  void contribute_unchanged(Value to, TensorId tensor);

 private:
  void launch_accumulation(Value to, TensorId share);
  /// Whether the numbers of a collective are added up in a wider type than they have.
  [[nodiscard]] bool widens(OperatorKind kind, DataType dtype) const;
  TensorId launch_cast(const Operator& op, std::string_view what, Phase phase, TensorId from, Bytes bytes);
};

[[nodiscard]] constexpr bool is_relu(OperatorKind kind) {
  return kind == OperatorKind::relu || kind == OperatorKind::relu6;
}
[[nodiscard]] constexpr bool is_cube(OperatorKind kind) {
  return kind == OperatorKind::convolution || kind == OperatorKind::linear || kind == OperatorKind::expert_linear;
}
[[nodiscard]] constexpr KernelClass kernel_class(OperatorKind kind) {
  if (kind == OperatorKind::convolution) return KernelClass::convolution;
  return is_cube(kind) ? KernelClass::matmul : KernelClass::vector;
}
[[nodiscard]] constexpr Bytes bytes_of_bits(std::uint64_t bits) { return (bits + 7) / 8; }

/// Elements of part 0, 1 or 2 of attention's inputs: queries, keys, values.
[[nodiscard]] std::uint64_t qkv_elements(const Operator& op, std::uint32_t part);

/// What a neighbour_exchange of `own` elements sends in each direction: what the neighbour there puts around its own,
/// or in the backward pass the gradients of what came from there.
[[nodiscard]] NeighbourElements neighbour_elements(const Operator& op, const Shape& own, bool back);

/// Whether no kernel is launched: average pooling that keeps every pixel, dropout of nothing.
[[nodiscard]] bool is_identity(const Graph& graph, const Operator& op);

/// Whether an allgather puts together what its ranks have sliced only to keep less for the backward pass, which repeats
/// it. In the forward pass the two undo each other, and so they do to the gradient.
[[nodiscard]] bool restores_slice(const Graph& graph, OperatorId gather);
/// Whether a slice is what such an allgather reads.
[[nodiscard]] bool is_kept_slice(const Graph& graph, OperatorId slice);

/// Writes the kernels of the forward pass, the loss (which also writes the gradient of the logits) included.
void lower_forward(LoweringState& state);
/// Writes the kernels of an attention whose keys and values go round a group (ring_attention.cpp).
void lower_ring_attention(LoweringState& state, OperatorId id, Phase phase);
/// Writes those of its gradients; `dy` is that of its output.
void differentiate_ring_attention(LoweringState& state, OperatorId id, TensorId dy);
/// Write the kernels of the gradients around experts (experts.cpp); `dy` is that of the output.
/// Of logits: from the gates, which have a gradient as far as they are kept, and the whole softmax.
void differentiate_route(LoweringState& state, OperatorId id, TensorId dy);
/// Of the rows: adds up what the experts give back of each. Where a row goes has no gradient.
void differentiate_dispatch(LoweringState& state, OperatorId id, TensorId dy);
/// Of the experts' rows and of the gates, in one kernel.
void differentiate_combine(LoweringState& state, const Operator& op, TensorId dy);
/// Repeats the kernel of `head` … `tail` in the backward pass.
void lower_again(LoweringState& state, OperatorId head, OperatorId tail);
/// Writes the kernels of the backward pass and the gradients of the parameters.
void lower_backward(LoweringState& state);

}  // namespace hcclsim::models
