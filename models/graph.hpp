#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/tensor.hpp"

/// A network, or what one rank computes of it, as a graph of operators in forward order. Operator 0 is the input batch
/// and the last one the loss (a stage of a pipeline begins with a receive and may end with a send). Edges are the
/// `inputs` of an operator; a tensor with several consumers is a fork (residual connections). Parameters are numbered
/// in *parameter order* (the order of the forward pass, weight before bias), the names are those of torchvision.
///
/// Communication is an operator like others. It names its group by the number of a *family*: the groups in which the
/// ranks that compute this graph meet, each rank in one of them. What a group is, and how it communicates, is not known
/// here.
namespace hcclsim::models {

enum class OperatorKind : std::uint8_t {
  input,
  convolution,
  batch_norm,
  relu,
  relu6,
  max_pool,
  average_pool,  ///< adaptive: any input size to a given output size
  add,
  bias,  ///< adds a number per channel or feature
  flatten,
  linear,
  dropout,
  gelu,    ///< x · Φ(x) in the tanh form: x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))
  swiglu,  ///< x · σ(x) · y of two tensors, or another activation of x in its place
  tanh,
  layer_norm,          ///< over the features of every row
  rms_norm,            ///< x / √(mean of x² over the features of the row, or of a head of it, + ε), times a weight
  token_embedding,     ///< tokens to rows of a table
  position_embedding,  ///< row t of a table for position t of every sequence, added to the input unless it is tokens
  segment_embedding,  ///< the same with row ⌊t · rows / sequence⌋: a sequence consists of as many segments as rows
  class_token,        ///< puts a learned row in front of every sequence
  rotary,             ///< turns pairs of features of every head by angles that grow with the position
  attention,       ///< softmax(Q·Kᵀ/√d)·V per head, of Q, K and V or of a tensor with the features of all three
  select_rows,     ///< the first rows of every sequence
  patches,         ///< an image as a sequence: a row of all channels per pixel
  join_rows,       ///< the rows of every sequence side by side, as one row
  sum_rows,        ///< the sum of the rows of every sequence, and a bias if it has one
  factorization,   ///< half of (Σv)² − Σv² over the rows v of every sequence, summed over the features
  join_heads,      ///< a row of one tensor behind the features of every head of another
  repeat_heads,    ///< every head of keys or values as often as queries share it, one after the other
  route,           ///< gates of experts: softmax of logits per row, of which the greatest are kept and the others are 0
  dispatch,        ///< copies rows to the experts whose gates are not 0: experts × capacity × features
  expert_linear,   ///< a linear operator for each expert's rows
  combine,         ///< per row, the sum of what its experts made of it, times their gates
  loss,            ///< mean softmax cross-entropy of logits against one label per row; of several, their sum
  binary_loss,     ///< mean cross-entropy of the sigmoid of one logit per row against a label of 0 or 1
  split,           ///< along an axis into equal parts, one output each
  concat,          ///< along an axis
  slice,           ///< along an axis, the part of this rank of the group
  pad,             ///< zeros before and behind it, along an axis
  reshape,         ///< the same numbers in axes of other sizes
  vector,          ///< work of the vector unit on its inputs that is none of the above, as VectorWork says
  product,         ///< products of matrices of its inputs, or of its input and a weight, as MatrixProduct says
  all_reduce,      ///< the sum over the group
  all_gather,      ///< what the group has, one behind the other along an axis, in the order of its ranks
  reduce_scatter,  ///< the sum over the group, of which each rank keeps its part along an axis
  all_to_all,      ///< part i along one axis goes to rank i; what comes is put together along another one
  broadcast,       ///< what the root of the group has
  /// Borders of what the neighbours in the group have are put before and behind it, along an axis or two; zeros at the
  /// ends.
  neighbour_exchange,
  host_copy,  ///< what the host has computed, to the memory of the rank; its gradient goes back
  send,       ///< to one other rank
  receive,    ///< from one other rank
};

/// Of x, before a product with y.
enum class Activation : std::uint8_t {
  silu,  ///< x · σ(x)
  gelu,  ///< as OperatorKind::gelu
  relu   ///< max(x, 0); with y = x its square
};

[[nodiscard]] std::string_view name_of(Activation activation);
/// Operations per element, of silu and gelu with those of the exponential function that they are made of; and of the
/// slope.
[[nodiscard]] std::uint32_t activation_flops(Activation activation);
[[nodiscard]] std::uint32_t activation_slope_flops(Activation activation);

[[nodiscard]] std::string_view name_of(OperatorKind kind);
/// Whether ranks talk to each other in it.
[[nodiscard]] constexpr bool communicates(OperatorKind kind) { return kind >= OperatorKind::all_reduce; }

/// Square window of a convolution or a pooling operator, in pixels.
struct Window {
  std::uint32_t kernel = 1;
  std::uint32_t stride = 1;
  std::uint32_t padding = 0;

  [[nodiscard]] std::uint32_t area() const { return kernel * kernel; }
};

using OperatorId = std::uint32_t;
/// Of an operator before the first layer or behind the last one.
inline constexpr std::uint32_t no_layer = ~0U;
/// Of an operator or a parameter that is not a part's copy of one of a whole network.
inline constexpr std::uint32_t no_original = ~0U;

/// One output of an operator.
struct Value {
  // NOLINTNEXTLINE(google-explicit-constructor): an operator's id names its first output.
  Value(OperatorId id, std::uint32_t number = 0) : op(id), output(number) {}
  OperatorId op;
  std::uint32_t output;
  bool operator==(const Value&) const = default;
};

/// With whom an operator communicates, or whose parts it cuts and joins. Group rank r of n has the r-th of n parts.
struct Group {
  std::uint32_t family = 0;  ///< number of the family of groups
  std::uint32_t ranks = 1;   ///< of each group
  std::uint32_t root = 0;    ///< of broadcast: rank of the group
};

/// Sizes along an axis that are put before and behind a tensor.
struct Border {
  std::uint32_t before = 0;
  std::uint32_t behind = 0;
  bool operator==(const Border&) const = default;
};

/// How a rank computes the loss of one tensor of logits.
struct LossPart {
  /// Whose parts of the classes make the whole. Maximum and sum of every row are those of the group; labels count all
  /// classes.
  Group classes{};
  /// On the gradient of the mean over the rows of this rank: 1 / n if it has one of n parts of the rows, or is one of n
  /// ranks with the same rows.
  double gradient_factor = 1;
  std::uint32_t copies = 1;  ///< ranks with rows of which this rank has the same, or other classes
};

/// The other end of a message.
struct Peer {
  std::int64_t offset = 0;  ///< its rank minus this rank
  std::uint32_t tag = 0;    ///< messages between two ranks with one tag arrive in the order in which they are sent
  std::optional<std::uint32_t> gradient_tag = {};  ///< of the gradient, which goes the other way; none: the same
  bool returns = true;                             ///< there is a gradient that goes the other way
};

/// What an operator of the vector unit does that has no kind of its own. It reads its inputs whole, and its parameters.
struct VectorWork {
  std::uint64_t forward = 0;             ///< element operations of the forward pass
  std::uint64_t backward = 0;            ///< … of the backward pass, one kernel
  bool keeps_inputs = false;             ///< the gradient reads the inputs
  bool keeps_output = false;             ///< … and what it made
  bool by_rows = false;                  ///< each row of a sequence by itself
  std::optional<Seconds> duration = {};  ///< of the forward pass, in place of the cost model; backward twice of it
};

/// `groups` products of a matrix m×k and one k×n.
struct MatrixProduct {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t groups = 1;
};

struct Operator {
  std::string name;
  OperatorKind kind = OperatorKind::input;
  std::vector<Value> inputs;
  std::vector<Tensor> outputs;
  Window window;                ///< convolution and max_pool
  std::uint32_t groups = 1;     ///< convolution; = channels for a depthwise one
  std::uint32_t sequence = 1;   ///< operators of sequences: rows of one sequence (of the input where rows are added up)
  std::uint32_t heads = 1;      ///< attention, rotary: of the queries; rms_norm: that are normalised by themselves
  std::uint32_t kv_heads = 1;   ///< attention: of keys and values; a divisor of heads, which share them in order
  std::uint32_t key_width = 0;  ///< attention: features of a head of queries and keys; 0: as many as of values
  Activation activation = Activation::silu;  ///< swiglu
  std::uint32_t turned = 0;  ///< rotary: of every head, how many features are turned, the last ones; 0: all
  bool causal = false;       ///< attention: a position sees itself and those before it
  double met = 1;  ///< attention: of the pairs of positions that a causal mask leaves, how many a fused kernel computes
  float drop_rate = 0;  ///< dropout, attention (of its probabilities): fraction of elements set to zero
  std::uint32_t axis =
      0;  ///< split, concat, slice, pad, all_gather, reduce_scatter, all_to_all (cut along it), exchange
  std::uint32_t joined_axis = 0;  ///< all_to_all: the parts that come are joined along it
  Border border{};                ///< pad, neighbour_exchange
  /// neighbour_exchange: the group lies in rows of so many ranks, which cut the axis behind `axis`; each rank has up to
  /// eight neighbours. 1: all ranks cut `axis`.
  std::uint32_t columns = 1;
  Border column_border{};  ///< along that axis
  /// token_embedding: rows of each part of the table if they are not equal. The tokens of part k of n are those of the
  /// k-th of n parts of the positions of every sequence; a rank has the parts of its place in the group.
  std::vector<std::uint32_t> row_parts{};
  bool on_host = false;     ///< token_embedding: the host has the table, and computes
  std::uint32_t ahead = 0;  ///< token_embedding: position t looks up token t + ahead of the sequence
  /// Of communication and slice. Others know by it which part of a whole this rank has, if the group has several ranks:
  ///  - token_embedding: of the rows of the table; tokens of other rows give zeros;
  ///  - position_embedding, segment_embedding, rotary: of the positions of every sequence, `sequence` of which it has;
  ///    the table is whole;
  ///  - attention: of the positions. Keys and values of the group go round it as around a ring, so that the queries of
  ///    this rank meet all of them;
  ///  - batch_norm: of the samples and pixels of every channel. Statistics are those of the group.
  Group group{};
  std::vector<LossPart> loss_parts{};  ///< loss, binary_loss: of each input; route; empty: all are whole
  Peer peer{};                         ///< send, receive
  /// all_to_all: elements from each rank of the group to each other, rank by rank; empty: equal parts of what is cut.
  std::vector<std::uint64_t> counts{};
  std::uint32_t top_k = 1;   ///< route: gates of a row that are not 0
  bool normalised = false;   ///< route: those add up to 1
  float balance_weight = 0;  ///< route: of the loss that grows as its experts are used unevenly
  /// dispatch, and its route: parts of a sequence have places of their own, so that a rank dispatches the positions
  /// that it has; else rows of a sequence take the places of experts one after the other.
  bool of_parts = false;
  bool dropless = false;              ///< dispatch: its capacity is no bound, but the rows that are expected
  VectorWork work{};                  ///< vector
  MatrixProduct product{};            ///< product
  std::uint32_t layer = no_layer;     ///< what pipelines are cut into, and what is recomputed as one
  std::uint32_t chunk = 0;            ///< of a rank that computes several parts of a network: the part it belongs to
  bool adapter = false;               ///< of an adapter beside a frozen product (models/adapters.hpp)
  bool recompute = false;             ///< its outputs are not kept for the backward pass, which computes them again
  OperatorId original = no_original;  ///< in a part of a network: its number in the whole, which random numbers go by
  /// Indices in parameter order: weight, then bias if it has one. A send or receive with one moves the parameter itself
  /// to a stage that has it too, once per step, and its gradient back. The weight of a linear operator may be the table
  /// of an embedding before it, which then has two gradients to be added ("tied").
  std::vector<std::uint32_t> parameters;

  /// Of its first output.
  [[nodiscard]] const Shape& shape() const { return outputs.front().shape; }
};

struct Parameter {
  std::string name;  ///< "layer1.0.conv1.weight"
  /// Convolution: out, in / groups, kernel, kernel; linear: out, in; of experts: experts, out, in; table of an
  /// embedding: rows, features.
  std::vector<std::uint32_t> shape;
  std::uint64_t elements = 0;
  OperatorId owner = 0;                  ///< the first operator that has it
  double initial_scale = 1;              ///< factor on its initial values: ResNet starts its residual branches small
  bool frozen = false;                   ///< it is not trained: it has no gradient, and no states of an optimizer
  std::uint32_t original = no_original;  ///< in a part of a network: its number in the whole
};

/// What operator 0 holds per sample.
enum class InputKind : std::uint8_t {
  features,  ///< a row of numbers
  images,    ///< channels × height × width
  tokens,    ///< `channels` indices into a table, the sequence
};

[[nodiscard]] std::string_view name_of(InputKind kind);

struct Graph {
  std::string title;  ///< for people: "ResNet50 v1.5"
  InputKind input_kind = InputKind::features;
  std::vector<Operator> operators;
  std::vector<Parameter> parameters;
  std::uint32_t layers = 0;   ///< that operators belong to
  std::uint32_t samples = 0;  ///< of a part of a network; 0: as many as its first tensor has

  /// Samples, of which a stage of a pipeline does not see the first tensor.
  [[nodiscard]] std::uint32_t batch() const { return samples > 0 ? samples : operators.front().shape().batch(); }
  /// Rows of all logits, each of which has a label.
  [[nodiscard]] std::uint32_t label_rows() const;
  /// Shape of the first input of `op`; the operator must have one.
  [[nodiscard]] const Shape& input_of(const Operator& op) const { return tensor(op.inputs.front()).shape; }
  [[nodiscard]] const Tensor& tensor(Value value) const { return operators[value.op].outputs[value.output]; }
  [[nodiscard]] std::uint64_t parameter_elements() const;
  /// Of the parameters that are trained.
  [[nodiscard]] std::uint64_t trained_elements() const;
  /// Of the parameters that a row meets: of experts, those that it is dispatched to.
  [[nodiscard]] std::uint64_t active_parameter_elements() const;
  /// Whether an operator has a parameter that is trained.
  [[nodiscard]] bool trains(const Operator& op) const;
  /// Whether back-propagation goes through each operator: it or one before it trains parameters, or receives a tensor
  /// whose gradient its sender wants.
  [[nodiscard]] std::vector<bool> needs_gradient() const;
  /// The values are numbered through, operator by operator: the number of the first output of each operator, and last
  /// the number of all values.
  [[nodiscard]] std::vector<std::uint32_t> first_values() const;
  /// Number of operators that read each value.
  [[nodiscard]] std::vector<std::uint32_t> consumer_counts() const;
};

/// Weights behind one output element of a convolution or linear operator, of experts too: input channels per group ·
/// window.
[[nodiscard]] std::uint64_t weights_per_output(const Graph& graph, const Operator& op);

/// The gates that an operator on the rows of experts depends on: those of the dispatch before it.
[[nodiscard]] const Operator& route_of(const Graph& graph, const Operator& op);

/// Rows that each expert has place for: its even share of `tokens` · top_k rows times `factor`, rounded up. Throws
/// Error(bad_input, "model") if the factor is not above 0.
[[nodiscard]] std::uint32_t expert_capacity(std::uint64_t tokens, std::uint32_t experts, std::uint32_t top_k,
                                            double factor);

/// Features of a head of an attention's queries and keys, and of its values.
[[nodiscard]] inline std::uint32_t value_width(const Operator& op) { return op.shape().channels() / op.heads; }
[[nodiscard]] inline std::uint32_t key_width(const Operator& op) {
  return op.key_width > 0 ? op.key_width : value_width(op);
}

/// Scores of an attention over all sequences and heads: one per pair of positions.
[[nodiscard]] std::uint64_t attention_scores(const Operator& op);

/// Floating-point operations of the forward pass of an operator over the whole batch: 2 per multiply-add of a
/// convolution or linear operator (a bias is not counted), batch and layer norm 7 per element, pooling one per element
/// that it reads, softmax cross-entropy 5 per logit, GELU 9 per element (tanh is one of them), other element-wise
/// operators and embeddings 1; cutting, joining and communication none. Attention: its two products as 2 per
/// multiply-add, the scores that a causal mask hides included, and 6 per score for the scaled softmax, 1 more with
/// dropout. RMS norm 4 per element, SwiGLU 6, rotary positions 3 per element that is turned; factorization 3 per
/// element that it reads, the sum of rows 1; sigmoid cross-entropy 6 per logit; gates 5 per logit and 1 more per
/// choice, combining 2 per element of the experts' rows.
[[nodiscard]] Flops forward_flops(const Graph& graph, const Operator& op);

/// The same for the backward pass: twice the forward of a convolution or linear operator, once if its input needs no
/// gradient; batch norm 11 per element, layer norm 15, GELU 17, max pooling 1 per output, average pooling 1 per
/// element of the window, softmax and sigmoid cross-entropy 2 per logit, other element-wise operators and embeddings 1.
/// Attention: four products and 5 per score, 1 more with dropout. RMS norm 9 per element, 3 without a gradient of its
/// input, SwiGLU 12, rotary positions and tanh 3; factorization 2 per element that it read; gates 5 per logit;
/// combining 3 and dispatching 1 per element of the experts' rows.
[[nodiscard]] Flops backward_flops(const Graph& graph, const Operator& op, bool input_needs_gradient);

/// 2 per multiply-add of the products of a convolution, linear operator or attention in the forward pass, however they
/// are carried out (of experts: of places that rows can take); 0 of others. `causal`: only half of causal attention.
[[nodiscard]] Flops product_flops(const Graph& graph, const Operator& op, bool causal);

/// What the literature counts as the operations of a network in the forward pass: the products of all operators. The
/// backward pass has twice as many.
[[nodiscard]] Flops model_flops(const Graph& graph, bool causal = false);

/// Forward pass of all operators and backward pass of those whose output has a gradient.
[[nodiscard]] Flops step_flops(const Graph& graph);

}  // namespace hcclsim::models
