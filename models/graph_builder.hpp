#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/graph.hpp"

/// Builds a Graph operator by operator and infers the shapes. What cannot be is refused with Error(bad_input) of kind
/// "model" that names the operator and the sizes: a batch of 0 or more than 65536, no channels, an image smaller than
/// a window or than the product of the strides before it, operands of an addition that differ, attention heads that do
/// not divide the features, a drop rate outside [0, 1), operators of sequences without sequences to read, and
/// when it is finished, an operator whose outputs nobody reads.
namespace hcclsim::models {

struct ConvolutionOptions {
  std::uint32_t channels = 0;  ///< of the output
  Window window;
  std::uint32_t groups = 1;
  bool bias = false;
};

struct AttentionOptions {
  std::uint32_t heads = 1;
  std::uint32_t kv_heads = 0;  ///< heads of keys and values; 0: as many as of queries
  bool causal = false;
  float drop_rate = 0;  ///< of the probabilities
  double met = 1;       ///< as Operator::met
};

struct RouteOptions {
  std::uint32_t top_k = 1;   ///< gates of a row that are kept
  bool normalised = false;   ///< those are divided by their sum
  float balance_weight = 0;  ///< of the loss of uneven use
};

/// Kind of the Error for an input image that is too small for the network's windows and strides.
inline constexpr std::string_view small_input = "input-size";

class GraphBuilder {
 public:
  /// Starts with the batch of input images (or feature vectors: height = width = 1) as operator 0.
  GraphBuilder(std::string title, const Shape& input);
  /// Starts with a batch of `sequences` of `length` tokens each as operator 0; only token_embedding reads it.
  [[nodiscard]] static GraphBuilder of_tokens(std::string title, std::uint32_t sequences, std::uint32_t length);

  /// Starts with a tensor that another rank sends, as operator 0: a stage of a pipeline behind the first.
  [[nodiscard]] static GraphBuilder of_stage(std::string title, const Tensor& received, const Peer& from);

  /// What is appended from now on is the next layer, as pipelines and recomputing count them.
  void begin_layer() { layer_ = graph_.layers++; }
  /// What is appended from now on is behind the last layer.
  void end_layers() { layer_ = no_layer; }

  /// Id of the input batch.
  [[nodiscard]] static OperatorId input() { return 0; }
  [[nodiscard]] const Shape& shape(Value value) const { return graph_.tensor(value).shape; }

  OperatorId convolution(std::string name, Value from, const ConvolutionOptions& options);
  /// The scales start at `initial_scale` times their usual values.
  OperatorId batch_norm(std::string name, Value from, double initial_scale = 1);
  OperatorId relu(std::string name, Value from) {
    return append(std::move(name), OperatorKind::relu, {from}, shape(from));
  }
  OperatorId relu6(std::string name, Value from) {
    return append(std::move(name), OperatorKind::relu6, {from}, shape(from));
  }
  OperatorId max_pool(std::string name, Value from, const Window& window);
  /// Average pooling of any image to `size` x `size` pixels.
  OperatorId average_pool(std::string name, Value from, std::uint32_t size);
  OperatorId add(std::string name, Value main, Value shortcut);
  OperatorId flatten(std::string name, Value from);
  /// `from` must be flat.
  OperatorId linear(std::string name, Value from, std::uint32_t features, bool bias);
  /// Sets the fraction `rate` of the elements to zero, 0 ≤ rate < 1, and scales the others by 1 / (1 − rate).
  OperatorId dropout(std::string name, Value from, float rate = 0.5F);
  OperatorId gelu(std::string name, Value from) {
    return append(std::move(name), OperatorKind::gelu, {from}, shape(from));
  }
  OperatorId tanh(std::string name, Value from) {
    return append(std::move(name), OperatorKind::tanh, {from}, shape(from));
  }
  /// f(gate) · up, both of one shape; f as `activation` says.
  OperatorId swiglu(std::string name, Value gate, Value up, Activation activation = Activation::silu);
  /// A linear operator whose weight is the table of `embedding`, a token embedding.
  OperatorId tied_linear(std::string name, Value from, OperatorId embedding, bool bias);
  /// The rows of the tokens that stand `ahead` further on, from the table of `embedding`.
  OperatorId tied_embedding(std::string name, OperatorId embedding, std::uint32_t ahead);
  /// `from` must be flat.
  OperatorId layer_norm(std::string name, Value from);
  /// With `heads` above 1, of each head of a row, with one weight for all of them.
  OperatorId rms_norm(std::string name, Value from, std::uint32_t heads = 1);

  // Sequences. Tokens, or the patches of an image, make them; other operators keep them.
  /// One row of `features` per token of the input: a matrix of sequences × length rows.
  OperatorId token_embedding(std::string name, Value from, std::uint32_t vocabulary, std::uint32_t features);
  /// Adds row t of a table to position t; the table has rows for `positions` of them, 0: for a sequence.
  OperatorId position_embedding(std::string name, Value from, std::uint32_t positions = 0);
  /// Row t of such a table for position t of the tokens of the input.
  OperatorId position_rows(std::string name, std::uint32_t positions, std::uint32_t features);
  OperatorId segment_embedding(std::string name, Value from, std::uint32_t segments);
  OperatorId class_token(std::string name, Value from);
  /// A row of channels for each pixel of an image.
  OperatorId patches(std::string name, Value from);
  /// `from` has the features of `heads` heads of even size side by side, of each of which the last `turned` are turned;
  /// 0: all.
  OperatorId rotary(std::string name, Value from, std::uint32_t heads, std::uint32_t turned = 0);
  /// Puts a row of `shared` behind the features of every head of a row of `from`.
  OperatorId join_heads(std::string name, Value from, Value shared, std::uint32_t heads);
  /// `from` has the queries, keys and values side by side; the result has the features of the queries.
  OperatorId attention(std::string name, Value from, const AttentionOptions& options);
  /// The result has the features of the values, of which a head may have others than of queries and keys.
  OperatorId attention(std::string name, Value queries, Value keys, Value values, const AttentionOptions& options);
  OperatorId select_rows(std::string name, Value from, std::uint32_t rows);
  OperatorId join_rows(std::string name, Value from);
  OperatorId sum_rows(std::string name, Value from, bool bias);
  OperatorId factorization(std::string name, Value from);

  // Experts. What they work on is experts × capacity × features.
  /// `logits`: one per row and expert. The gates have the same shape.
  OperatorId route(std::string name, Value logits, const RouteOptions& options);
  /// `capacity`: rows of each expert, an equal part of them for every sequence; later ones are dropped.
  /// Unless it is dropless: then it is the rows that are expected.
  /// `of_parts`: as Operator::of_parts, as dropless rows always are.
  OperatorId dispatch(std::string name, Value from, Value gates, std::uint32_t capacity, bool dropless = false,
                      bool of_parts = false);
  /// `rows` as dispatch gives them; each expert has a weight of its own.
  OperatorId expert_linear(std::string name, Value rows, std::uint32_t features);
  OperatorId combine(std::string name, Value rows, Value gates);

  // Operators that say themselves what they do, for networks that are read from files.
  /// The same numbers in axes of other sizes; `sequence`: rows of a sequence in them, 0: as before.
  OperatorId reshape(std::string name, Value from, Shape shape, std::uint32_t sequence = 0);
  /// Parameters follow by add_weight().
  OperatorId vector_work(std::string name, std::vector<Value> inputs, Shape output, const VectorWork& work);
  /// `inputs`: both factors, or one, whose weight follows by add_weight(). `by_rows`: each row of a sequence by itself.
  OperatorId matrix_product(std::string name, std::vector<Value> inputs, Shape output, const MatrixProduct& product,
                            bool by_rows = false);
  /// The next parameter of the operator appended last; returns its number.
  std::uint32_t add_weight(OperatorId owner, std::vector<std::uint32_t> shape);
  /// The operator appended last also has a parameter of another one.
  void share_weight(OperatorId owner, std::uint32_t parameter) {
    graph_.operators[owner].parameters.push_back(parameter);
  }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] std::uint32_t rows_of_sequence(Value from) const { return sequences_[from.op]; }

  /// Cuts along an axis into equal parts, one output each.
  OperatorId split(std::string name, Value from, std::uint32_t axis, std::uint32_t parts);
  /// Joins tensors along an axis; the other sizes must be equal.
  OperatorId concat(std::string name, const std::vector<Value>& parts, std::uint32_t axis);
  /// The part of this rank, when the ranks of the group share an axis in equal parts.
  OperatorId slice(std::string name, Value from, const Group& group, std::uint32_t axis);

  // Communication, within a group or with one peer. What is cut must be a multiple of the group's ranks.
  OperatorId all_reduce(std::string name, Value from, const Group& group) {
    return append_collective(std::move(name), OperatorKind::all_reduce, from, group, shape(from));
  }
  OperatorId all_gather(std::string name, Value from, const Group& group, std::uint32_t axis);
  OperatorId reduce_scatter(std::string name, Value from, const Group& group, std::uint32_t axis);
  OperatorId all_to_all(std::string name, Value from, const Group& group, std::uint32_t cut_axis,
                        std::uint32_t joined_axis);
  OperatorId broadcast(std::string name, Value from, const Group& group) {
    return append_collective(std::move(name), OperatorKind::broadcast, from, group, shape(from));
  }
  void send(std::string name, Value from, const Peer& to);
  OperatorId receive(std::string name, const Tensor& what, const Peer& from);

  /// Adds the softmax cross-entropy of `logits` as the last operator and hands the graph out.
  [[nodiscard]] Graph finish(Value logits) && { return std::move(*this).finish_sum({logits}); }
  /// The same with the sum of several losses.
  [[nodiscard]] Graph finish_sum(const std::vector<Value>& logits) &&;
  /// Adds the cross-entropy of the sigmoid of one logit per row.
  [[nodiscard]] Graph finish_binary(Value logits) &&;
  /// Hands out a stage that ends without a loss; its results have been sent.
  [[nodiscard]] Graph finish() &&;

 private:
  /// Refuses an operator of sequences whose input has none; returns the length of a sequence.
  [[nodiscard]] std::uint32_t sequence_of(std::string_view name, Value from) const;
  /// Refuses what is not flat; returns its features.
  [[nodiscard]] std::uint32_t features_of(std::string_view name, Value from) const;
  /// Appends an operator that makes `length` rows of `features` of every sequence.
  OperatorId append_rows(std::string name, OperatorKind kind, Value from, std::uint32_t length, std::uint32_t features);
  OperatorId append_attention(std::string name, std::vector<Value> inputs, std::uint32_t features,
                              const AttentionOptions& options);
  /// `output` by value: it may be the shape of an operator that moves when one is appended.
  OperatorId append(std::string name, OperatorKind kind, std::vector<Value> inputs, Shape output);
  OperatorId append_collective(std::string name, OperatorKind kind, Value from, const Group& group, Shape output,
                               std::uint32_t axis = 0);
  /// The shape of `from` with an axis cut into equal parts.
  [[nodiscard]] Shape cut(std::string_view name, const Shape& whole, std::uint32_t axis, std::uint32_t parts) const;
  void add_parameter(OperatorId owner, std::string_view suffix, std::vector<std::uint32_t> shape);
  /// Shape of `from` after a window slid over it; notes the stride of the result against the network's input.
  Shape slide(std::string_view name, Value from, const Window& window, std::uint32_t channels);

  Graph graph_;
  std::vector<std::uint64_t> strides_;    ///< per operator: product of the strides from the input to it
  std::vector<std::uint32_t> sequences_;  ///< per operator: rows of one sequence; 0: it has none
  std::uint64_t parameter_elements_ = 0;
  std::uint32_t layer_ = no_layer;
  std::uint64_t next_stride_ = 0;  ///< stride of the operator appended next; 0: as its first input
};

}  // namespace hcclsim::models
