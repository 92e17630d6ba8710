#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// A network as a graph of operators in forward order. Operator 0 is the input batch and the last one the loss; every
/// operator has one output tensor, so an operator's id also names its output. Edges are the `inputs` of an operator; a
/// tensor with several consumers is a fork (residual connections). Parameters are numbered in *parameter order* (the
/// order of the forward pass, weight before bias), the names are those of torchvision.
namespace hcclsim::models {

/// Sizes of a tensor in NCHW order; a matrix of features has height = width = 1. Sequences are such matrices: batch =
/// sequences × length rows, one after the other. The tokens that go in are a matrix of sequences × length.
struct Shape {
  std::uint32_t batch = 1;
  std::uint32_t channels = 1;
  std::uint32_t height = 1;
  std::uint32_t width = 1;

  [[nodiscard]] std::uint64_t image() const { return std::uint64_t{height} * width; }
  [[nodiscard]] std::uint64_t elements() const { return image() * batch * channels; }
  bool operator==(const Shape&) const = default;
};

/// "32x64x112x112", or "32x1000" for a matrix.
[[nodiscard]] std::string to_string(const Shape& shape);

enum class OperatorKind : std::uint8_t {
  input,
  convolution,
  batch_norm,
  relu,
  relu6,
  max_pool,
  average_pool,  ///< adaptive: any input size to a given output size
  add,
  flatten,
  linear,
  dropout,
  gelu,                ///< x · Φ(x) in the tanh form: x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))
  layer_norm,          ///< over the features of every row
  token_embedding,     ///< tokens to rows of a table
  position_embedding,  ///< adds row t of a table to position t of every sequence
  attention,           ///< softmax(Q·Kᵀ/√d)·V per head; the input's features are those of Q, then of K, then of V
  loss,                ///< mean softmax cross-entropy of the logits against one label per row
};

[[nodiscard]] std::string_view name_of(OperatorKind kind);

/// Square window of a convolution or a pooling operator, in pixels.
struct Window {
  std::uint32_t kernel = 1;
  std::uint32_t stride = 1;
  std::uint32_t padding = 0;

  [[nodiscard]] std::uint32_t area() const { return kernel * kernel; }
};

using OperatorId = std::uint32_t;

struct Operator {
  std::string name;
  OperatorKind kind = OperatorKind::input;
  std::vector<OperatorId> inputs;
  Shape output;
  Window window;                          ///< convolution and max_pool
  std::uint32_t groups = 1;               ///< convolution; = channels for a depthwise one
  std::uint32_t sequence = 1;             ///< position_embedding, attention: rows of one sequence
  std::uint32_t heads = 1;                ///< attention
  bool causal = false;                    ///< attention: a position sees itself and those before it
  float drop_rate = 0.5F;                 ///< dropout: fraction of elements set to zero
  std::vector<std::uint32_t> parameters;  ///< indices in parameter order: weight, then bias if it has one
};

struct Parameter {
  std::string name;  ///< "layer1.0.conv1.weight"
  /// Convolution: out, in / groups, kernel, kernel; linear: out, in; table of an embedding: rows, features.
  std::vector<std::uint32_t> shape;
  std::uint64_t elements = 0;
  OperatorId owner = 0;
  double initial_scale = 1;  ///< factor on its initial values: ResNet starts its residual branches small
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

  [[nodiscard]] std::uint32_t batch() const { return operators.front().output.batch; }
  /// Features of the logits.
  [[nodiscard]] std::uint32_t classes() const { return input_of(operators.back()).channels; }
  /// Shape of the first input of `op`; the operator must have one.
  [[nodiscard]] const Shape& input_of(const Operator& op) const { return operators[op.inputs.front()].output; }
  [[nodiscard]] std::uint64_t parameter_elements() const;
  /// Whether back-propagation goes through each operator: it or one before it has parameters.
  [[nodiscard]] std::vector<bool> needs_gradient() const;
  /// Number of operators that read each operator's output.
  [[nodiscard]] std::vector<std::uint32_t> consumer_counts() const;
};

/// Weights behind one output element of a convolution or linear operator: input channels per group · window.
[[nodiscard]] std::uint64_t weights_per_output(const Graph& graph, const Operator& op);

/// Scores of an attention over all sequences and heads: one per pair of positions.
[[nodiscard]] std::uint64_t attention_scores(const Operator& op);

/// Floating-point operations of the forward pass of an operator over the whole batch: 2 per multiply-add of a
/// convolution or linear operator (a bias is not counted), batch and layer norm 7 per element, pooling one per element
/// that it reads, softmax cross-entropy 5 per logit, GELU 9 per element (tanh is one of them), other element-wise
/// operators and embeddings 1. Attention: its two products as 2 per multiply-add, the scores that a causal mask hides
/// included, and 6 per score for the scaled softmax.
[[nodiscard]] Flops forward_flops(const Graph& graph, const Operator& op);

/// The same for the backward pass: twice the forward of a convolution or linear operator, once if its input needs no
/// gradient; batch norm 11 per element, layer norm 15, GELU 17, max pooling 1 per output, average pooling 1 per
/// element of the window, softmax cross-entropy 2 per logit, other element-wise operators and embeddings 1. Attention:
/// four products and 5 per score.
[[nodiscard]] Flops backward_flops(const Graph& graph, const Operator& op, bool input_needs_gradient);

/// Forward pass of all operators and backward pass of those whose output has a gradient.
[[nodiscard]] Flops step_flops(const Graph& graph);

}  // namespace hcclsim::models
